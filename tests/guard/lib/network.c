// SPDX-License-Identifier: MIT OR Apache-2.0
/* The network of the machine's network card: see network.h. */
#define _GNU_SOURCE
#include "network.h"
#include "command.h"
#include "tap.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* In tools/machine/src/qemu.rs. */
#define SERVER		"10.0.2.100"
#define SENDS_FILES	80
#define HASHES		81

#define PATIENCE	60	/* seconds */

bool network_find(char name[IFNAMSIZ])
{
	DIR *directory = opendir("/sys/class/net");
	struct dirent *entry;

	name[0] = 0;
	while (directory && (entry = readdir(directory)))
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, "lo"))
			snprintf(name, IFNAMSIZ, "%.15s", entry->d_name);
	if (directory)
		closedir(directory);
	return name[0];
}

int network_set(const char *name, bool on)
{
	int socket_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;
	struct sockaddr_in address = { .sin_family = AF_INET };
	struct ifreq request = {};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (on) {
		inet_pton(AF_INET, "10.0.2.15", &address.sin_addr);
		memcpy(&request.ifr_addr, &address, sizeof(address));
		err = ioctl(socket_fd, SIOCSIFADDR, &request) ? -errno : 0;
		inet_pton(AF_INET, "255.255.255.0", &address.sin_addr);
		memcpy(&request.ifr_netmask, &address, sizeof(address));
		if (!err)
			err = ioctl(socket_fd, SIOCSIFNETMASK, &request) ? -errno : 0;
	}
	request.ifr_flags = on ? IFF_UP | IFF_RUNNING : 0;
	if (!err)
		err = ioctl(socket_fd, SIOCSIFFLAGS, &request) ? -errno : 0;
	close(socket_fd);
	return err;
}

static unsigned short checksum(const void *data, unsigned int size)
{
	const unsigned short *words = data;
	unsigned int sum = 0;

	for (; size; size -= 2)
		sum += *words++;
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

/* Sends an echo request of 1,000 bytes to the router. Whether the same bytes come back. */
static bool echo(int socket_fd, unsigned short number)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	struct {
		struct icmphdr header;
		unsigned char data[1000];
	} packet = { .header = { .type = ICMP_ECHO } };
	unsigned char answer[2000];
	unsigned int i;

	inet_pton(AF_INET, "10.0.2.2", &address.sin_addr);
	packet.header.un.echo.id = htons(getpid());
	packet.header.un.echo.sequence = htons(number);
	for (i = 0; i < sizeof(packet.data); i++)
		packet.data[i] = i * 7 + number;
	packet.header.checksum = checksum(&packet, sizeof(packet));
	if (sendto(socket_fd, &packet, sizeof(packet), 0, (struct sockaddr *)&address,
		   sizeof(address)) != sizeof(packet))
		return false;
	for (i = 0; i < 10; i++) {
		long size = recv(socket_fd, answer, sizeof(answer), 0);

		/* After an IP header of 20 bytes; and not a packet of another test. */
		if (size == 20 + sizeof(packet) && answer[20] == ICMP_ECHOREPLY &&
		    !memcmp(answer + 24, &packet.header.un, 4))
			return !memcmp(answer + 28, packet.data, sizeof(packet.data));
		if (size < 0)
			return false;
	}
	return false;
}

/* A busy computer may be late with an answer: so many are asked for again, in all. */
#define SPARE_ECHOES	3

int network_echo(void)
{
	int socket_fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP), i, good = 0;
	int spare = SPARE_ECHOES;
	bool came;
	struct timeval patience = { .tv_sec = 20 };

	setsockopt(socket_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	/* The link may take a while; the first one also has to find the router. */
	for (i = 0; i < 10 && !echo(socket_fd, 1000 + i); i++)
		;
	for (i = 0; i < NETWORK_ECHOES; i++) {
		do
			came = echo(socket_fd, i);
		while (!came && spare-- > 0);
		good += came;
	}
	close(socket_fd);
	return good;
}

/* A connection to the server. Returns a socket or -errno. */
static int connect_to(int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	int socket_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), err;
	struct timeval patience = { .tv_sec = PATIENCE };

	inet_pton(AF_INET, SERVER, &address.sin_addr);
	setsockopt(socket_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(socket_fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (!connect(socket_fd, (struct sockaddr *)&address, sizeof(address)))
		return socket_fd;
	err = -errno;
	close(socket_fd);
	return err;
}

/* Copies all that there is. Returns the bytes or -errno. */
static long copy_all(int from, int to)
{
	static char buffer[65536];
	long size, sum = 0, done, part;

	while ((size = read(from, buffer, sizeof(buffer))) > 0) {
		for (done = 0; done < size; done += part) {
			part = write(to, buffer + done, size - done);
			if (part < 0)
				return -errno;
		}
		sum += size;
	}
	return size < 0 ? -errno : sum;
}

long network_fetch(const char *path, int to)
{
	int socket_fd = connect_to(SENDS_FILES);
	char line[1024];
	long size = snprintf(line, sizeof(line), "%s\n", path);

	if (socket_fd < 0)
		return socket_fd;
	size = send(socket_fd, line, size, MSG_NOSIGNAL) == size ? copy_all(socket_fd, to) : -EIO;
	close(socket_fd);
	return size;
}

long network_send(int from, char hash[65])
{
	int socket_fd = connect_to(HASHES), done, got = 0;
	long size;

	if (socket_fd < 0)
		return socket_fd;
	size = copy_all(from, socket_fd);
	shutdown(socket_fd, SHUT_WR);
	do {
		done = recv(socket_fd, hash + got, 64 - got, 0);
		got += done > 0 ? done : 0;
	} while (done > 0 && got < 64);
	hash[got] = 0;
	close(socket_fd);
	return size >= 0 && got < 64 ? -EIO : size;
}

void network_hash(const char *path, char hash[65])
{
	char command[400];

	snprintf(command, sizeof(command), "sha256sum <%s", path);
	if (command_run(command))
		bail("%s has no SHA-256", path);
	snprintf(hash, 65, "%.64s", command_output);
}

bool network_fetches(const char *path, const char *to, const char *hash)
{
	int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	long size = network_fetch(path, fd);
	char got[65];

	close(fd);
	network_hash(to, got);
	return size > 0 && !strcmp(got, hash);
}

bool network_sends(const char *path, const char *hash)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char got[65];
	long size = network_send(fd, got);

	close(fd);
	return size > 0 && !strcmp(got, hash);
}
