// SPDX-License-Identifier: GPL-2.0-only
/*
 * A driver of QEMU's device edu, as any driver is: it knows nothing of the guard. A program writes
 * up to 4,095 bytes to /sys/kernel/debug/dune-guard-edu; the device copies that to itself and back
 * to other memory, and raises an interrupt each time; the program reads what came back. The device
 * is the one that the parameter "address" names.
 */
#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/dma-mapping.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>

#include "edu.h"

/* It has a page, but QEMU refuses the last byte. */
#define EDU_MOST	4095
/* The device has addresses of 28 bits. */
#define EDU_BITS	28

#define PATIENCE	(20 * HZ)

static char *address;
module_param(address, charp, 0400);

static struct dentry *file;
static void __iomem *registers;
static u8 *memory;		/* two pages: to the device, and from it */
static dma_addr_t memory_at;
static size_t length;
static DECLARE_COMPLETION(is_done);
static DEFINE_MUTEX(lock);

static irqreturn_t on_interrupt(int irq, void *data)
{
	u32 status = readl(registers + EDU_INTERRUPTS);

	if (!status)
		return IRQ_NONE;
	writel(status, registers + EDU_ACKNOWLEDGE);
	complete(&is_done);
	return IRQ_HANDLED;
}

static int transfer(u64 from, u64 to, u32 command)
{
	reinit_completion(&is_done);
	edu_copy(registers, from, to, length, command | EDU_INTERRUPT);
	return wait_for_completion_timeout(&is_done, PATIENCE) ? 0 : -ETIMEDOUT;
}

static ssize_t file_write(struct file *unused, const char __user *from, size_t count, loff_t *at)
{
	ssize_t got;
	int err;

	mutex_lock(&lock);
	*at = 0;
	memset(memory, 0, 2 * PAGE_SIZE);
	got = simple_write_to_buffer(memory, EDU_MOST, at, from, count);
	length = got > 0 ? got : 0;
	err = length ? transfer(memory_at, EDU_BUFFER, 0) : -EINVAL;
	err = err ?: transfer(EDU_BUFFER, memory_at + PAGE_SIZE, EDU_TO_MEMORY);
	mutex_unlock(&lock);
	return err ?: got;
}

static ssize_t file_read(struct file *unused, char __user *to, size_t count, loff_t *at)
{
	return simple_read_from_buffer(to, count, at, memory + PAGE_SIZE, length);
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.read = file_read,
	.write = file_write,
};

static int use_interrupt(struct pci_dev *device)
{
	int err = pci_alloc_irq_vectors(device, 1, 1, PCI_IRQ_MSI);

	if (err < 0)
		return err;
	err = request_irq(pci_irq_vector(device, 0), on_interrupt, 0, "dune-guard-edu", device);
	if (err)
		pci_free_irq_vectors(device);
	return err;
}

static int edu_probe(struct pci_dev *device, const struct pci_device_id *id)
{
	int err;

	if (!address || strcmp(address, pci_name(device)))
		return -ENODEV;
	err = pcim_enable_device(device) ?:
	      pcim_iomap_regions(device, BIT(0), "dune-guard-edu") ?:
	      dma_set_mask_and_coherent(&device->dev, DMA_BIT_MASK(EDU_BITS));
	if (err)
		return err;
	registers = pcim_iomap_table(device)[0];
	memory = dmam_alloc_coherent(&device->dev, 2 * PAGE_SIZE, &memory_at, GFP_KERNEL);
	if (!memory)
		return -ENOMEM;
	pci_set_master(device);
	err = use_interrupt(device);
	if (!err)
		file = debugfs_create_file("dune-guard-edu", 0600, NULL, NULL, &operations);
	return err;
}

static void edu_remove(struct pci_dev *device)
{
	debugfs_remove(file);
	free_irq(pci_irq_vector(device, 0), device);
	pci_free_irq_vectors(device);
	pci_clear_master(device);
}

static const struct pci_device_id ids[] = {
	{ PCI_DEVICE(0x1234, 0x11e8) },
	{}
};

static struct pci_driver edu_driver = {
	.name = "dune-guard-edu",
	.id_table = ids,
	.probe = edu_probe,
	.remove = edu_remove,
};

module_pci_driver(edu_driver);
MODULE_DESCRIPTION("A driver of QEMU's device edu, for the tests of Dune's guard");
MODULE_LICENSE("GPL v2");
