// SPDX-License-Identifier: MIT OR Apache-2.0
/* The words in which the explorer prints a way: events, crossings, actions and states. */
#include "world.h"

static const char *const crossings[] = {
	[BORDER_REFUSED] = "no crossing",
	[BORDER_IN_CALL] = "border-in call",
	[BORDER_IN_RET] = "border-in ret",
	[BORDER_IN_RTI] = "border-in rti",
	[BORDER_OUT_CALL] = "border-out call",
	[BORDER_OUT_RET] = "border-out ret",
	[BORDER_OUT_INT] = "border-out int",
};

static const char *const actions[] = {
	[ACT_FLUSH_K] = "flush K", [ACT_FLUSH_M] = "flush M", [ACT_LOWER] = "lower",
	[ACT_RAISE] = "raise", [ACT_SAVE] = "save", [ACT_CLEAR] = "clear",
	[ACT_RESTORE] = "restore", [ACT_FIXUP] = "fixup", [ACT_FRESH_STACK] = "fresh stack",
	[ACT_CLEAR_STACK] = "clear stack", [ACT_KEEP] = "keep", [ACT_GIVE_BACK] = "give back",
	[ACT_FAIL] = "fail", [ACT_ENTER_M] = "enter M", [ACT_ENTER_K] = "enter K",
	[ACT_PUBLISH] = "publish", [ACT_DELIVER] = "deliver", [ACT_FAULT] = "#GP",
	[ACT_REPORT] = "report", [ACT_LOG] = "log", [ACT_PANIC] = "panic",
	[ACT_CHANGE] = "change", [ACT_REFUSE] = "refuse",
	[ACT_LOCK_CONFIG] = "lock config", [ACT_FREEZE] = "freeze",
	[ACT_ASK_FLUSH] = "ask for flushes", [ACT_HASH] = "hash", [ACT_OPEN] = "open",
	[ACT_CLOSE] = "close", [ACT_SWEEP] = "sweep", [ACT_CLEAR_SECRETS] = "clear secrets",
	[ACT_THAW] = "thaw", [ACT_UNLOCK_CONFIG] = "unlock config",
};

static const char *const calls[] = {
	[EVENT_BIND] = "binds fewer privileges to", [EVENT_FREEZE] = "freezes",
	[EVENT_ACK] = "acknowledges", [EVENT_HASH] = "asks for the hash of",
	[EVENT_MATCH] = "match", [EVENT_MISMATCH] = "mismatch", [EVENT_ARM] = "arms",
	[EVENT_SEAL] = "seals", [EVENT_REVOKE] = "revokes", [EVENT_STOP] = "stop",
	[EVENT_THAW] = "thaws",
};

static const char *const states[] = {
	"loaded", "frozen", "flushed", "hashed", "armed", "sealed", "dying",
};

const char *crossing_name(u8 crossing)
{
	return crossings[crossing];
}

const char *action_name(u32 kind)
{
	return actions[kind];
}

const char *state_name(u8 state)
{
	return states[state];
}

void print_event(const struct world *w, const struct event *e, FILE *log)
{
	static const char *const places[] = {
		[INIT] = "init", [ENTRY] = "entry", [EXIT] = "exit", [CALLED] = "after the call",
		[INTERRUPTED] = "the interrupted instruction", [AFTER_BUG] = "after the bug",
		[FIXUP] = "the fixup", [STUB] = "the stub", [WRONG] = "an arbitrary place",
	};
	u64 rip = e->exit.at.rip;
	const struct pending *pending = &w->pending[e->cpu];

	if (e->cpu == CPUS)
		fprintf(log, "IOMMU: ");
	else if (e->kind != CALL && e->kind != CALL_MEANWHILE && e->kind != DMA &&
		 e->kind != MOVE_BAR && e->kind != RELOAD && e->kind != UNMAP)
		fprintf(log, "CPU %d: ", e->cpu);
	switch (e->kind) {
	case FETCH:
		fprintf(log, "fetches %s of module %d, RSP %#llx%s%s\n",
			places[rip - text_of(e->module)], e->module, e->exit.at.rsp,
			e->exit.return_address == CALLER ? "" :
			e->exit.return_address == LEAF ? ", return address in a leaf" :
			", return address in the text",
			e->exit.is_proper ? "" : ", in ring 3");
		break;
	case COMMIT:
		fprintf(log, pending->kind == CLAIM ? "takes the activation\n" :
			"sends its acknowledgment\n");
		break;
	case FLUSH:
		fprintf(log, "flushes, to acknowledge to module %d\n", e->module);
		break;
	case LEAVE:
		if (!e->exit.is_fetch)
			fprintf(log, "is interrupted in M (cause %d), RSP %#llx%s\n", e->exit.cause,
				e->exit.at.rsp, rip == FUNCTION ? ", at a jump out" : "");
		else
			fprintf(log,
				"fetches outside of the text in M, RIP %#llx, RSP %#llx, "
				"return address %#llx\n", rip, e->exit.at.rsp,
				e->exit.return_address);
		break;
	case WRITE:
		fprintf(log, "writes to the text of module %d\n", e->module);
		break;
	case DMA:
		fprintf(log, "a device writes to the text of module %d\n", e->module);
		break;
	case RELOAD:
		fprintf(log, "the kernel loads module %d again, as it is registered\n", e->module);
		break;
	case WRITE_FAULT:
		fprintf(log, "faults on a write to the text of module %d\n", e->module);
		break;
	case MOVE_BAR:
		fprintf(log, "the kernel moves the BAR\n");
		break;
	case UNMAP:
		fprintf(log, "the kernel ends a translation, and begins a shootdown\n");
		break;
	case INVALIDATE:
		fprintf(log, "invalidates it in K's tag\n");
		break;
	case CALL_MEANWHILE:
	case CALL:
		fprintf(log, "the loader %s module %d", calls[e->call], e->module);
		if (e->kind == CALL_MEANWHILE)
			fprintf(log, ", and meanwhile CPU %d takes its activation", e->cpu);
		fprintf(log, "\n");
		break;
	}
}
