/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs the fuzz target without libFuzzer: over files, and then over inputs made from them by
 * chance, always the same.
 * Usage: messages [-n MUTATED] FILE-OR-DIRECTORY...
 */
#include <dirent.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/random.h"

#define MAX_FILES 2000u
#define MAX_OCTETS 1024u

int LLVMFuzzerTestOneInput(const uint8_t *octets, size_t count);

struct input {
    size_t count;
    uint8_t octets[MAX_OCTETS];
};

static struct input inputs[MAX_FILES];
static uint32_t inputs_count;
static const struct input *running;

/* ---- files ------------------------------------------------------------------------------- */

static void add_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || inputs_count == MAX_FILES) {
        fprintf(stderr, "fuzz: %s: %s\n", path, file ? "one file too many" : "cannot be read");
        exit(2);
    }
    struct input *input = &inputs[inputs_count++];
    input->count = fread(input->octets, 1, sizeof input->octets, file);
    if (ferror(file) || getc(file) != EOF) {
        fprintf(stderr, "fuzz: %s: cannot be read, or has more than %u octets\n", path, MAX_OCTETS);
        exit(2);
    }
    fclose(file);
}

/* In the order of their names, so that the inputs made from them are the same everywhere. */
static void add(const char *path)
{
    struct stat is;
    struct dirent **names;
    if (stat(path, &is) != 0 || !S_ISDIR(is.st_mode)) {
        add_file(path);
        return;
    }
    int count = scandir(path, &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
        if (names[i]->d_name[0] != '.')
            add_file(file);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
}

/* ---- running ----------------------------------------------------------------------------- */

/* Which input it was: `xxd -r -p` makes the file that shows it again. */
static void say_which(int signal_number)
{
    static const char hex[] = "0123456789abcdef";
    char text[2 * MAX_OCTETS + 1];
    size_t length = 0;
    for (size_t i = 0; running && i < running->count; i++) {
        text[length++] = hex[running->octets[i] >> 4];
        text[length++] = hex[running->octets[i] & 15];
    }
    text[length++] = '\n';
    static const char words[] = "fuzz: the input, in hex: ";
    if (write(STDERR_FILENO, words, sizeof words - 1) < 0 || write(STDERR_FILENO, text, length) < 0)
        _exit(3);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void run(const struct input *input)
{
    running = input;
    /* In memory of exactly this size, so that sanitizers see what is read beyond. */
    uint8_t *octets = malloc(input->count ? input->count : 1);
    memcpy(octets, input->octets, input->count);
    LLVMFuzzerTestOneInput(octets, input->count);
    free(octets);
}

static uint32_t below(uint64_t *random, size_t limit)
{
    return sim_random_below(random, (uint32_t)limit);
}

static void mutate(struct input *input, uint64_t *random)
{
    size_t at = input->count ? below(random, input->count) : 0;
    size_t rest = input->count - at, most = MAX_OCTETS - input->count;
    const struct input *other = &inputs[below(random, inputs_count)];
    switch (below(random, 5)) {
    case 0:
        input->octets[at] ^= (uint8_t)(1u << below(random, 8));
        break;
    case 1:
        input->octets[at] = (uint8_t)below(random, 256);
        break;
    case 2: /* an octet less */
        if (rest)
            memmove(input->octets + at, input->octets + at + 1, --rest);
        input->count = at + rest;
        break;
    case 3: /* an octet more */
        if (most == 0)
            break;
        memmove(input->octets + at + 1, input->octets + at, rest);
        input->octets[at] = (uint8_t)below(random, 256);
        input->count++;
        break;
    default: /* the end of another one */
        if (other->count > 1) {
            size_t from = 1 + below(random, other->count - 1), octets = other->count - from;
            if (octets > MAX_OCTETS - at)
                octets = MAX_OCTETS - at;
            memcpy(input->octets + at, other->octets + from, octets);
            input->count = at + octets;
        }
        break;
    }
}

int main(int argc, char **argv)
{
    uint64_t random = 1;
    uint32_t mutated = 0;
    int option;
    while ((option = getopt(argc, argv, "n:")) == 'n')
        mutated = (uint32_t)strtoul(optarg, NULL, 10);
    for (int i = optind; i < argc; i++)
        add(argv[i]);
    if (option != -1 || inputs_count == 0) {
        fprintf(stderr, "usage: messages [-n MUTATED] FILE-OR-DIRECTORY...\n");
        return 2;
    }
    signal(SIGABRT, say_which);
    /* Worlds are opened and closed all the time: their memory stays with the process. */
    mallopt(M_MMAP_THRESHOLD, 16 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    for (uint32_t i = 0; i < inputs_count; i++)
        run(&inputs[i]);
    for (uint32_t i = 0; i < mutated; i++) {
        struct input input = inputs[below(&random, inputs_count)];
        for (uint32_t n = 1 + below(&random, 4); n > 0; n--)
            mutate(&input, &random);
        run(&input);
    }
    printf("%u files and %u inputs made from them: nothing found\n", inputs_count, mutated);
    return 0;
}
