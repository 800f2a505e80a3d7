/* SPDX-License-Identifier: MIT */
/* corpus_main: the main of a fuzz target where there is no libFuzzer: runs every file that is
 * named, and every file of every folder that is named, in the order of their names.
 * It prints each file as a test, so that the corpus counts in ./check. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
run_file(const char *path, const char *name)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    size_t size = 0, capacity = 0, got;

    printf("[ RUN      ] %s\n", name);
    fflush(stdout);
    if (file == NULL) {
        printf("cannot be read\n[  FAILED  ] %s\n", name);
        return 1;
    }
    do {
        if (size == capacity) {
            capacity = capacity > 0 ? capacity * 2 : 4096;
            data = realloc(data, capacity);
            if (data == NULL)
                abort();
        }
        got = fread(data + size, 1, capacity - size, file);
        size += got;
    } while (got > 0);
    fclose(file);
    uint8_t *exact = malloc(size > 0 ? size : 1); /* so that a read beyond it is seen */
    if (exact == NULL)
        abort();
    memcpy(exact, data, size);
    free(data);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    printf("[       OK ] %s\n", name);
    fflush(stdout);
    return 0;
}

static int
run_folder(const char *folder)
{
    struct dirent **entries;
    char path[4096];
    int failed = 0;
    int count = scandir(folder, &entries, NULL, alphasort);

    if (count < 0) {
        perror(folder);
        return 1;
    }
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            failed |= run_file(path, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return failed;
}

int
main(int argc, char **argv)
{
    struct stat status;
    int failed = 0;

    for (int i = 1; i < argc; i++) {
        if (stat(argv[i], &status) == 0 && S_ISDIR(status.st_mode))
            failed |= run_folder(argv[i]);
        else
            failed |= run_file(argv[i], argv[i]);
    }
    return failed;
}
