// SPDX-License-Identifier: MIT OR Apache-2.0
/* With both headers, the compiler refuses a declaration of internals.h that is not libdune's. */
#include "host.h"
#include "internals.h"
#include "memory.h"
