/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The network of the machine's network card, in which there are QEMU's router and a server
 * (tools/machine/src/qemu.rs).
 */
#ifndef DUNE_TESTS_GUARD_NETWORK_H
#define DUNE_TESTS_GUARD_NETWORK_H

#include <stdbool.h>
#include <net/if.h>

/* The packets of network_echo(). */
#define NETWORK_ECHOES	20

/* The one network interface besides "lo". Returns whether there is one. */
bool network_find(char name[IFNAMSIZ]);
/* Switch the interface on, with an address in its network, or off. 0 or -errno. */
int network_set(const char *name, bool on);
/* Send echo requests of 1,000 bytes to the router. How many came back, with the same bytes. */
int network_echo(void);
/* Fetch a file of the computer on which the machine runs. The bytes, or -errno. */
long network_fetch(const char *path, int to);
/* Send a file, of which the server tells the SHA-256. The bytes, or -errno. */
long network_send(int from, char hash[65]);
/* The SHA-256 of a file as sha256sum has it, without the network. */
void network_hash(const char *path, char hash[65]);
/* A file of this computer and of the other one is fetched, or sent, and has that SHA-256 then. */
bool network_fetches(const char *path, const char *to, const char *hash);
bool network_sends(const char *path, const char *hash);

#endif
