/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_RUNTIME_CHECKPOINT_H
#define ERRAND_RUNTIME_CHECKPOINT_H
/* checkpoint: between runtime.c, which makes runtimes, and checkpoint.c.  Owner thread only. */
#include "errand/checkpoint.h"
#include "runtime/runtime.h"

/* Fills what the config leaves open from its checkpoint, if there is one; its choices in *out_choices,
 * if it has none.  OK, ESPENT or EINVAL (it contradicts the checkpoint); reported. */
errand_status errand__checkpoint_configure(errand_runtime_config *config,
                                           errand_choices *out_choices,
                                           const char *function);
/* Puts the rest into a fresh runtime and spends the checkpoint.  ENOMEM: it is as it was. */
errand_status errand__checkpoint_apply(errand_runtime *runtime);
#endif
