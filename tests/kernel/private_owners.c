// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Private memory belongs to one address space. Fails when another address space of the process,
 * or a child, reaches a page at the address of the first one's, or gets one that was not cleared;
 * when another vCPU of the same address space does not reach it; when a thread adds pages through
 * another thread's vCPU; and when the pages change by what the others do.
 */
#define _GNU_SOURCE
#include "child.h"
#include "private.h"
#include "tap.h"

#include <errno.h>
#include <pthread.h>
#include <sys/ioctl.h>

#define PAGES	8

static struct guest g;
static u64 first;	/* guest-physical address of the first page */

/* In the guest. */
static u64 clear(void *page)
{
	for (u64 i = 0; i < SECRETS; i++)
		((volatile u64 *)page)[i] = 0;
	return 0;
}

static void another_address_space(void)
{
	struct guest h;
	u64 gpa;

	guest_call(&g, keep_secrets, (void *)PRIVATE_AT);
	guest_open(&h);
	private_show(&h, first);
	guest_first_exit(&h, guest_load, PRIVATE_AT);
	ok(private_missing(&h, first),
	   "another address space of the process has nothing at the same address");
	is(private_add(&h, 1, &gpa), 0, "another address space adds a page");
	guest_first_exit(&h, guest_load, PRIVATE_AT + 4096);
	ok(gpa == first && private_missing(&h, first + 4096),
	   "another address space has its one page, and no second one");
	guest_call(&h, count_secrets, (void *)PRIVATE_AT);
	is(h.value, 0, "the other address space's page has nothing of the first one");
	guest_call(&h, clear, (void *)PRIVATE_AT);
	guest_close(&h);
	guest_call(&g, count_secrets, (void *)PRIVATE_AT);
	is(g.value, SECRETS, "the first address space has its own after the other one was closed");
}

static void *second_vcpu(void *arg)
{
	struct dune_create_vcpu create = { .size = sizeof(create) };
	u64 *result = arg;
	struct guest h;
	u64 gpa;

	result[0] = -private_add(&g, 1, &gpa);
	if (guest_adopt(&h, ioctl(g.dev, DUNE_CREATE_VCPU, &create)))
		return NULL;
	private_show(&h, first);
	guest_call(&h, count_secrets, (void *)PRIVATE_AT);
	result[1] = h.value;
	guest_close(&h);
	return NULL;
}

static void another_thread(void)
{
	u64 result[2] = { 0 };
	pthread_t t;

	pthread_create(&t, NULL, second_vcpu, result);
	pthread_join(t, NULL);
	is(result[0], EPERM, "another thread on this thread's vCPU: EPERM");
	is(result[1], SECRETS, "another vCPU of the address space reads its private memory");
}

static void child(void *arg)
{
	struct dune_renew_vcpu renew = { .size = sizeof(renew), .fd = g.fd };
	struct guest h;
	u64 gpa;

	if (private_add(&g, 1, &gpa) != -EPERM)
		child_fails("a page for the parent's vCPU is not EPERM");
	if (ioctl(g.fd, DUNE_RENEW_VCPU, &renew) || guest_adopt(&h, g.fd))
		child_fails("the child gets no vCPU of its own");
	private_show(&h, first);
	guest_first_exit(&h, guest_load, PRIVATE_AT);
	if (!private_missing(&h, first))
		child_fails("the child has memory at the address of the parent's");
	if (private_add(&h, 1, &gpa) || gpa != first)
		child_fails("the child's first page is not added, or has another address");
	if (guest_call(&h, count_secrets, (void *)PRIVATE_AT) != GUEST_DONE || h.value)
		child_fails("the child's page cannot be read, or has the parent's secrets");
}

static void a_child(void)
{
	struct outcome o = in_child(child, NULL, 20);

	ok(outcome_is(o, 0),
	   "a child has nothing of it, and gets its own with a vCPU of its own (%s)",
	   outcome_text(o));
	guest_call(&g, count_secrets, (void *)PRIVATE_AT);
	is(g.value, SECRETS, "the parent's is unchanged");
}

int main(void)
{
	if (private_begin(&g, 120)) {
		is(private_add(&g, PAGES, &first), 0, "%d pages are added", PAGES);
		private_show(&g, first);
		another_address_space();
		another_thread();
		a_child();
	}
	guest_close(&g);
	return private_end();
}
