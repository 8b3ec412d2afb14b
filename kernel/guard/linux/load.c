// SPDX-License-Identifier: GPL-2.0-only
/*
 * The guard's memory: one physically contiguous block, aligned to its size of 2 or 4 MB, so that
 * whole entries of the nested page table lead to it. It has, in this order, the image, what the
 * image's configuration names, the page tables of both levels, the pages of each CPU, and what the
 * image takes for guarded modules.
 *
 * The nested page table maps every physical address to itself, as far as memory and devices reach:
 * by pages of 1 GB, or of 2 MB where the processor has no larger ones and around the block.
 */
#include <linux/acpi.h>
#include <linux/cpumask.h>
#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/string.h>
#include <asm/cpufeature.h>
#include <asm/msr-index.h>

#include "guard/linux/compat.h"
#include "guard/linux/guard.h"
#include "x86/msr.h"
#include "x86/svm/vmcb.h"

#define MOST_BITS	48	/* of a physical address: four levels */
#define LARGEST_ORDER	10

/* Pages: for the nested page table of the single step, and for what the image adds. */
#define LEAST_POOL	64

#define FLUSH_BY_ASID	BIT(6)		/* in EDX of CPUID_SVM */

/* Each MSR has two bits, for RDMSR and for WRMSR (hv/msr.c): all writes are intercepted. */
#define MSRPM_WRITES	0xaa

/* Hands out the block from its beginning. */
struct builder {
	struct guard_memory *memory;
	u64 used;
	u64 size;
	bool full;
};

static u64 block_size(const struct guard_memory *memory)
{
	return PAGE_SIZE << memory->order;
}

/* Returns zeroed pages; if the block has no more, the first page, and sets @full. */
static void *take(struct builder *builder, unsigned int pages)
{
	u64 at = builder->used;

	if (at + pages * PAGE_SIZE > builder->size) {
		builder->full = true;
		return builder->memory->block;
	}
	builder->used += pages * PAGE_SIZE;
	return builder->memory->block + at;
}

static u64 physical(const struct guard_memory *memory, const void *address)
{
	return memory->physical + (address - memory->block);
}

/* The table to which an entry of a table in the block leads; it is made if need be. */
static u64 *next_table(struct builder *builder, u64 *entry, u64 rights)
{
	struct guard_memory *memory = builder->memory;

	if (!*entry)
		*entry = physical(memory, take(builder, 1)) | rights;
	return memory->block + ((*entry & PAGE_MASK) - memory->physical);
}

static void map_image_page(struct builder *builder, u64 *root, u64 address, u64 entry)
{
	u64 *table = next_table(builder, &root[hv_index(address, HV_SHIFT_TOP)], HV_PTE_TABLE);

	table = next_table(builder, &table[hv_index(address, HV_SHIFT_GB)], HV_PTE_TABLE);
	table = next_table(builder, &table[hv_index(address, HV_SHIFT_LARGE)], HV_PTE_TABLE);
	table[hv_index(address, HV_SHIFT_PAGE)] = entry;
}

/*
 * The image's page table: the block, at the address at which Linux has it, and a copy of the page
 * with the instructions that change CR3.
 */
static void map_image(struct builder *builder, u64 *root)
{
	u64 cross = (u64)guard_cross_in & PAGE_MASK;
	struct guard_memory *memory = builder->memory;
	void *copy = take(builder, 1);
	u64 offset;

	memcpy(copy, (void *)cross, PAGE_SIZE);
	map_image_page(builder, root, cross, physical(memory, copy) | HV_PTE_TEXT);
	for (offset = 0; offset < builder->size; offset += PAGE_SIZE)
		map_image_page(builder, root, (u64)memory->block + offset,
			       (memory->physical + offset) |
			       (offset < memory->header.code_size ? HV_PTE_TEXT : HV_PTE_DATA));
}

/* The end of what the nested page table must map: of all memory and all devices. */
static u64 highest_address(void)
{
	u64 end = 1ULL << 32;
	struct resource *resource;

	/*
	 * Firmware reserves addresses at which nothing is, far above all else; but in other
	 * reserved places Linux has found devices. The list's lock is Linux's own: memory and
	 * bridges come and go under this one.
	 */
	acpi_scan_lock_acquire();
	for (resource = iomem_resource.child; resource; resource = resource->sibling)
		if (!resource->name || strcmp(resource->name, "Reserved") || resource->child)
			end = max_t(u64, end, resource->end + 1);
	acpi_scan_lock_release();
	return end;
}

/*
 * Finds the parts of memory. A golden frame has to be in one of them: what a device has may change
 * without a write.
 */
static void find_memory(struct hv_config *config)
{
	struct resource *resource;
	unsigned int count = 0;

	acpi_scan_lock_acquire();
	for (resource = iomem_resource.child; resource; resource = resource->sibling) {
		if (!resource->name || strcmp(resource->name, "System RAM") ||
		    count == HV_MEMORY_PARTS)
			continue;
		config->parts[count].start = resource->start;
		config->parts[count++].end = resource->end + 1;
	}
	acpi_scan_lock_release();
}

/* Whole tables: with pages of 1 GB, the rest of the last table costs nothing. */
static u64 rounded_end(void)
{
	u64 end = highest_address();

	return boot_cpu_has(X86_FEATURE_GBPAGES) ? round_up(end, 1ULL << HV_SHIFT_TOP) :
						   round_up(end, 1ULL << HV_SHIFT_GB);
}

/* Returns the entries of the page directory that lead to the block. */
static u64 *map_guest(struct builder *builder, u64 *root)
{
	u64 *table, *directory, *block_entries = NULL, address, end = rounded_end();
	struct guard_memory *memory = builder->memory;
	int i;

	for (address = 0; address < end && !builder->full; address += 1ULL << HV_SHIFT_GB) {
		table = next_table(builder, &root[hv_index(address, HV_SHIFT_TOP)], HV_NPT_WRITE);
		table += hv_index(address, HV_SHIFT_GB);
		if (boot_cpu_has(X86_FEATURE_GBPAGES) &&
		    address >> HV_SHIFT_GB != memory->physical >> HV_SHIFT_GB) {
			*table = address | HV_NPT_WRITE | HV_NPT_LARGE;
			continue;
		}
		directory = next_table(builder, table, HV_NPT_WRITE);
		for (i = 0; i < HV_ENTRIES; i++)
			directory[i] = (address + i * HV_LARGE_PAGE) | HV_NPT_WRITE | HV_NPT_LARGE;
		if (address >> HV_SHIFT_GB == memory->physical >> HV_SHIFT_GB)
			block_entries = directory + hv_index(memory->physical, HV_SHIFT_LARGE);
	}
	return block_entries;
}

/* A nested page table whose entries all lead to @page. Returns the entry that leads to it. */
static u64 map_all_to(struct builder *builder, void *page, u64 rights)
{
	u64 *table = take(builder, 1);
	int i;

	for (i = 0; i < HV_ENTRIES; i++)
		table[i] = physical(builder->memory, page) | rights;
	return physical(builder->memory, table) | HV_NPT_WRITE;
}

/*
 * All memory but the block and page 0, for the image: at its physical addresses, as the nested page
 * table has it. Lower addresses are free there, since Linux's are in the upper half. So a NULL
 * pointer of the image's leads nowhere; Linux has nothing in page 0.
 */
static void map_memory(struct builder *builder, u64 *root)
{
	u64 *table, *directory, address, end = rounded_end();
	struct guard_memory *memory = builder->memory;
	int i;

	for (address = 0; address < end && !builder->full; address += 1ULL << HV_SHIFT_GB) {
		table = next_table(builder, &root[hv_index(address, HV_SHIFT_TOP)], HV_PTE_TABLE);
		table += hv_index(address, HV_SHIFT_GB);
		if (boot_cpu_has(X86_FEATURE_GBPAGES) && address &&
		    address >> HV_SHIFT_GB != memory->physical >> HV_SHIFT_GB) {
			*table = address | HV_PTE_DATA | HV_PTE_LARGE;
			continue;
		}
		directory = next_table(builder, table, HV_PTE_TABLE);
		for (i = address ? 0 : 1; i < HV_ENTRIES; i++)
			if (address + i * HV_LARGE_PAGE - memory->physical >= block_size(memory))
				directory[i] = (address + i * HV_LARGE_PAGE) | HV_PTE_DATA |
					       HV_PTE_LARGE;
	}
	for (address = PAGE_SIZE; address < HV_LARGE_PAGE; address += PAGE_SIZE)
		map_image_page(builder, root, address, address | HV_PTE_DATA);
}

/*
 * A place for M's page tables that no memory has, and that nobody can guess (guard/hv/space.c): in
 * the upper half of what the processor can address. 0 if memory reaches that far.
 */
static u64 choose_window(void)
{
	u64 bits = min_t(u64, boot_cpu_data.x86_phys_bits, MOST_BITS), half = 1ULL << (bits - 1);

	if (round_up(rounded_end(), 1ULL << HV_SHIFT_TOP) > half)
		return 0;
	return half | (get_random_u64() & (half - 1) & PAGE_MASK);
}

/* Where memory ends below 4 GB and above: but for the first megabyte, no device is in between. */
static void find_ends(struct hv_config *config)
{
	struct resource *resource;

	config->high_memory = 1ULL << 32;
	acpi_scan_lock_acquire();
	for (resource = iomem_resource.child; resource; resource = resource->sibling) {
		if ((resource->flags & IORESOURCE_SYSTEM_RAM) != IORESOURCE_SYSTEM_RAM)
			continue;
		if (resource->end < 1ULL << 32)
			config->low_memory = max_t(u64, config->low_memory, resource->end + 1);
		else
			config->high_memory = max_t(u64, config->high_memory, resource->end + 1);
	}
	acpi_scan_lock_release();
}

/* The window of PCI's configuration space, by the firmware's table (MCFG): of segment 0. */
static void find_ecam(struct hv_config *config)
{
	const struct acpi_mcfg_allocation *entry;
	struct acpi_table_header *mcfg;
	const void *end;
	u64 start, size;

	if (ACPI_FAILURE(acpi_get_table(ACPI_SIG_MCFG, 0, &mcfg)))
		return;
	end = (void *)mcfg + mcfg->length;
	for (entry = (void *)mcfg + sizeof(struct acpi_table_mcfg); (void *)(entry + 1) <= end;
	     entry++) {
		start = entry->address + ((u64)entry->start_bus_number << 20);
		size = (u64)(entry->end_bus_number - entry->start_bus_number + 1) << 20;
		/* All locked functions are beneath bus 0 of the first segment. */
		if (!entry->pci_segment && !entry->start_bus_number) {
			config->ecam = start;
			config->ecam_size = size;
		} else if (!entry->pci_segment && config->ecam_size &&
			   start == config->ecam + config->ecam_size) {
			config->ecam_size += size;
		} else {
			pr_warn("a second window of PCI configuration space is not protected: devices there can be laid over guarded ones\n");
		}
	}
	acpi_put_table(mcfg);
}

static void build(struct builder *builder)
{
	struct guard_memory *memory = builder->memory;
	void *image = take(builder, memory->header.size / PAGE_SIZE);
	struct hv_config *config = image + memory->header.config;
	void *msrpm = take(builder, HV_MSRPM_PAGES);
	void *iopm = take(builder, HV_IOPM_PAGES);
	void *zeros = take(builder, 1);
	void *sink = take(builder, 1);
	u64 *root;

	memcpy(image, guard_image, guard_image_end - guard_image);
	memset(msrpm, MSRPM_WRITES, HV_MSRPM_PAGES * PAGE_SIZE);
	memory->msrpm = physical(memory, msrpm);
	config->msrpm = msrpm;
	memory->iopm = physical(memory, iopm);
	config->iopm = iopm;
	guard_ports_fill(config);
	find_memory(config);
	find_ends(config);
	find_ecam(config);
	config->kernel = __START_KERNEL_map;
	config->modules = MODULES_VADDR;
	get_random_bytes(config->seed, sizeof(config->seed));
	config->efer = msr_read(MSR_EFER) | EFER_SVME;
	config->cross = (u64)guard_cross_out;
	config->memory = memory->physical;
	config->memory_size = block_size(memory);
	config->sink = sink;
	config->zero_table = map_all_to(builder, zeros, HV_NPT_READ);
	config->sink_table = map_all_to(builder, sink, HV_NPT_WRITE & ~HV_NPT_DIRTY);
	config->zero_entry = physical(memory, zeros) | HV_NPT_READ;
	config->sink_entry = physical(memory, sink) | (HV_NPT_WRITE & ~HV_NPT_DIRTY);
	config->block = (u64)memory->block;
	config->end = rounded_end();
	config->window = choose_window();
	config->flush_tag = cpuid_edx(CPUID_SVM) & FLUSH_BY_ASID ? TLB_CONTROL_FLUSH_ASID :
								   TLB_CONTROL_FLUSH_ALL_ASID;

	root = take(builder, 1);
	memory->cr3 = physical(memory, root);
	map_image(builder, root);
	map_memory(builder, root);
	root = take(builder, 1);
	memory->nested_cr3 = physical(memory, root);
	config->memory_pdes = map_guest(builder, root);
	config->nested_cr3 = memory->nested_cr3;

	config->cpus = nr_cpu_ids;
	memory->cpus = builder->used;
	config->cpu_areas = (u64)take(builder, nr_cpu_ids * HV_CPU_PAGES);
	/* The rest is for the tables of guarded modules, and some of it is needed at launch. */
	config->pool_pages = (builder->size - builder->used) / PAGE_SIZE;
	config->pool = memory->block + builder->used;
	if (config->pool_pages < LEAST_POOL + nr_cpu_ids)
		builder->full = true;
}

/* Allocates a block of 2^@order pages. Returns 0 or -ENOMEM; may sleep. */
static int allocate(struct guard_memory *memory, unsigned int order)
{
	struct page *page = alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN, order);

	if (!page)
		return -ENOMEM;
	memory->order = order;
	memory->block = page_address(page);
	memory->physical = page_to_phys(page);
	return 0;
}

int guard_load(struct guard_memory *memory, struct dune_guard_answer *answer)
{
	unsigned int order;

	if (rounded_end() > 1ULL << MOST_BITS)
		return guard_refuse(answer, -EOPNOTSUPP,
				    "memory or devices have physical addresses of more than %d bits",
				    MOST_BITS);
	memcpy(&memory->header, guard_image, sizeof(memory->header));
	for (order = get_order(HV_LARGE_PAGE); order <= LARGEST_ORDER; order++) {
		struct builder builder = { .memory = memory, .size = PAGE_SIZE << order };

		if (allocate(memory, order))
			return guard_refuse(answer, -ENOMEM,
					    "there are no %lu MB of contiguous memory: launch the guard earlier after the boot",
					    (PAGE_SIZE << order) >> 20);
		build(&builder);
		if (!builder.full)
			return 0;
		guard_unload(memory);
	}
	return guard_refuse(answer, -EOPNOTSUPP,
			    "this computer has more CPUs or memory than the guard's %lu MB have room for",
			    (PAGE_SIZE << LARGEST_ORDER) >> 20);
}

/* The opposite of guard_load(). No CPU runs under the guard; what it knew is cleared. */
void guard_unload(struct guard_memory *memory)
{
	memzero_explicit(memory->block, block_size(memory));
	free_pages((unsigned long)memory->block, memory->order);
	memset(memory, 0, sizeof(*memory));
}
