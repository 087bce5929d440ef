// Resolves the names in the file $NAMES, one a line with its addresses, for the program into which it is preloaded. `fails`
// instead of the addresses is a failure, and `hangs` lasts until the file has something else.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int look_up(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    look_up *system = (look_up *)dlsym(RTLD_NEXT, "getaddrinfo");
    const char *path = getenv("NAMES");
    for (;;) {
        FILE *file = path ? fopen(path, "r") : NULL;
        char line[512], *at, *word = NULL;
        while (file && fgets(line, sizeof line, file)) {
            word = strtok_r(line, " \n", &at);
            if (word && name && strcmp(word, name) == 0) break;
            word = NULL;
        }
        if (file) fclose(file);
        if (!word) return system(name, service, hints, found);
        *found = NULL;
        struct addrinfo **end = found;
        while ((word = strtok_r(NULL, " \n", &at))) {
            if (strcmp(word, "fails") == 0) return EAI_AGAIN;
            if (strcmp(word, "hangs") == 0) break;
            if (system(word, service, hints, end) != 0) return EAI_FAIL;
            while (*end) end = &(*end)->ai_next;
        }
        if (!word) return *found ? 0 : EAI_NONAME;
        usleep(10000);
    }
}
