/* SPDX-License-Identifier: MIT */
/* words: promises and layers, as people write them. */
#include <string.h>
#include "workers/sandbox/sandbox.h"

typedef struct word_bit {
    const char *word;
    uint32_t bit;
} word_bit;

static const word_bit promises[] = {
    {"pure", ERRAND_PROMISE_PURE},
    {"rpath", ERRAND_PROMISE_RPATH},
    {"wpath", ERRAND_PROMISE_WPATH},
    {"inet", ERRAND_PROMISE_INET},
    {"thread", ERRAND_PROMISE_THREAD},
    {"callback", ERRAND_PROMISE_CALLBACK},
    {NULL, 0},
};
static const word_bit layers[] = {
    {"no_new_privs", ERRAND_LAYER_NO_NEW_PRIVS},
    {"seccomp", ERRAND_LAYER_SECCOMP},
    {"landlock", ERRAND_LAYER_LANDLOCK},
    {"rlimits", ERRAND_LAYER_RLIMITS},
    {"uid_drop", ERRAND_LAYER_UID_DROP},
    {"user_ns", ERRAND_LAYER_USER_NS},
    {"net_ns", ERRAND_LAYER_NET_NS},
    {"ipc_ns", ERRAND_LAYER_IPC_NS},
    {"cgroup", ERRAND_LAYER_CGROUP},
    {NULL, 0},
};
#define BETWEEN " ,|"

static errand_status
refuse(const word_bit *words, const char *kind, const char *text, size_t length,
       char *out_text, size_t size)
{
    char known[128] = "";

    for (const word_bit *word = words; word->word != NULL; word++)
        errand__text_append(known, sizeof known, "%s%s", word == words ? "" : ", ",
                            word->word);
    errand__text_format(out_text, size, "'%.*s' is no %s; there are %s",
                        (int)(length < 40 ? length : 40), text, kind, known);
    return ERRAND_EINVAL;
}

static errand_status
read_words(const word_bit *words, const char *kind, const char *text, uint32_t *out_bits,
           char *out_text, size_t size)
{
    uint32_t bits = 0;

    for (;;) {
        size_t length;
        const word_bit *word = words;

        text += strspn(text, BETWEEN);
        length = strcspn(text, BETWEEN);
        if (length == 0)
            break;
        while (word->word != NULL &&
               (strlen(word->word) != length || memcmp(word->word, text, length) != 0))
            word++;
        if (word->word == NULL)
            return refuse(words, kind, text, length, out_text, size);
        bits |= word->bit;
        text += length;
    }
    *out_bits = bits;
    return ERRAND_OK;
}

errand_status
errand_promises_parse(const char *text, uint32_t *out_promises, char *out_text,
                      size_t size)
{
    ERRAND_REQUIRE_ARG(text != NULL && out_promises != NULL &&
                           (out_text != NULL || size == 0),
                       ERRAND_EINVAL, "text and out_promises are needed");
    return read_words(promises, "promise", text, out_promises, out_text, size);
}

errand_status
errand_layers_parse(const char *text, uint32_t *out_layers, char *out_text, size_t size)
{
    ERRAND_REQUIRE_ARG(text != NULL && out_layers != NULL &&
                           (out_text != NULL || size == 0),
                       ERRAND_EINVAL, "text and out_layers are needed");
    return read_words(layers, "layer", text, out_layers, out_text, size);
}
