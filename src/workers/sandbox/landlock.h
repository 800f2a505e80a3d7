/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_SANDBOX_LANDLOCK_H
#define ERRAND_SANDBOX_LANDLOCK_H
/* landlock: what the kernel's interface is, up to ABI 8; headers are older than kernels.  Which of
 * it there is must be tried at run time. */
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ERRAND__LANDLOCK_ABI_MAX = 8 };
enum { /* flags of create and restrict */
       ERRAND__LANDLOCK_CREATE_VERSION = 1,
       ERRAND__LANDLOCK_RESTRICT_TSYNC = 8 /* ABI 8: all threads */
};
enum { /* of a file */
       ERRAND__LANDLOCK_EXECUTE = 1 << 0,
       ERRAND__LANDLOCK_WRITE_FILE = 1 << 1,
       ERRAND__LANDLOCK_READ_FILE = 1 << 2,
       ERRAND__LANDLOCK_READ_DIR = 1 << 3,
       ERRAND__LANDLOCK_REMOVE_DIR = 1 << 4,
       ERRAND__LANDLOCK_REMOVE_FILE = 1 << 5,
       ERRAND__LANDLOCK_MAKE_DIR = 1 << 7,
       ERRAND__LANDLOCK_MAKE_REG = 1 << 8,
       ERRAND__LANDLOCK_FILES_1 = (1 << 13) - 1, /* everything of ABI 1 */
       ERRAND__LANDLOCK_REFER = 1 << 13,         /* ABI 2 */
       ERRAND__LANDLOCK_TRUNCATE = 1 << 14,      /* ABI 3 */
       ERRAND__LANDLOCK_IOCTL_DEV = 1 << 15      /* ABI 5 */
};
enum { /* of the network: ABI 4 */
       ERRAND__LANDLOCK_BIND_TCP = 1,
       ERRAND__LANDLOCK_CONNECT_TCP = 2
};
enum { /* scopes: ABI 6 */
       ERRAND__LANDLOCK_SCOPE_ABSTRACT_UNIX = 1,
       ERRAND__LANDLOCK_SCOPE_SIGNAL = 2
};
enum { ERRAND__LANDLOCK_RULE_PATH = 1, ERRAND__LANDLOCK_RULE_PORT = 2 };
typedef struct errand__landlock_ruleset {
    uint64_t files, network, scoped; /* 8 bytes before ABI 4, 16 before ABI 6 */
} errand__landlock_ruleset;
typedef struct __attribute__((packed)) errand__landlock_path {
    uint64_t allowed;
    int32_t descriptor;
} errand__landlock_path;
typedef struct errand__landlock_port {
    uint64_t allowed, port;
} errand__landlock_port;

#ifndef SYS_landlock_create_ruleset /* the same on all architectures */
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif
/* The kernel's ABI; below 1: none, and errno says why. */
static inline int
errand__landlock_abi(void)
{
    return (int)syscall(SYS_landlock_create_ruleset, NULL, 0,
                        ERRAND__LANDLOCK_CREATE_VERSION);
}

#endif
