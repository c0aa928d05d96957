/* stub_nvrtc.c: a libnvrtc that compiles nothing. Its cubin is an ELF file with one section of code
 * for each kernel that the text has, and its log says that kernels of the schedule the text names
 * first spill when $STUB_SPILLS is set: that is enough for the runtime's readers of both. Under the
 * injector each call can fail. */
#include "nvrtc.h"

#include "faults.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NVRTC_OUT_OF_MEMORY = 1, NVRTC_INTERNAL = 11, MOST_KERNELS = 32, CODE = 16 };

struct NvrtcProgram_st {
    char *text;
    char *cubin, *log;
    size_t bytes;
};

static int call(const char *name)
{
    static int (*chosen)(int, const char *);
    if (!chosen) {
        void *symbol = dlsym(RTLD_DEFAULT, "fault_now");
        memcpy(&chosen, &symbol, sizeof chosen);
    }
    return chosen && chosen(FAULT_CUDA, name) ? NVRTC_INTERNAL : 0;
}

#define ENTRY()                                                                                    \
    do {                                                                                           \
        if (call(__func__)) return NVRTC_INTERNAL;                                                 \
    } while (0)
#define NVRTC_PROTOTYPE(name, parameters)                                                          \
    __attribute__((visibility("default"))) int name parameters;
NVRTC_ENTRY_POINTS(NVRTC_PROTOTYPE)

int nvrtcVersion(int *major, int *minor)
{
    ENTRY();
    *major = 13, *minor = 0;
    return 0;
}
int nvrtcGetNumSupportedArchs(int *count)
{
    ENTRY();
    *count = 3;
    return 0;
}
int nvrtcGetSupportedArchs(int *archs)
{
    ENTRY();
    archs[0] = 80, archs[1] = 90, archs[2] = 100;
    return 0;
}

int nvrtcCreateProgram(NvrtcProgram *program, const char *text, const char *name, int headers,
                       const char *const *texts, const char *const *names)
{
    (void)name, (void)headers, (void)texts, (void)names;
    ENTRY();
    NvrtcProgram p = *program = calloc(1, sizeof *p);
    if (p && (p->text = strdup(text))) return 0;
    free(p);
    return NVRTC_OUT_OF_MEMORY;
}

int nvrtcDestroyProgram(NvrtcProgram *program)
{
    NvrtcProgram p = *program;
    *program = NULL;
    free(p->text);
    free(p->cubin);
    free(p->log);
    free(p);
    ENTRY();
    return 0;
}

/* The names behind `void` of all lines that begin so behind one with __global__. */
static int find_kernels(const char *text, const char *names[], size_t lengths[])
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, "__global__")) && count < MOST_KERNELS;) {
        const char *name = strstr(at, "void ");
        if (!name) break;
        names[count] = name + 5;
        lengths[count++] = strcspn(name + 5, "( \n");
        at = name;
    }
    return count;
}

/* ELF header, code of all kernels, the sections' names, the sections. */
static char *make_cubin(const char *const names[], const size_t lengths[], int count, size_t *bytes)
{
    const size_t sections = (size_t)count + 2, code = sizeof(Elf64_Ehdr),
                 strings = code + (size_t)count * CODE;
    size_t text = 1 + sizeof ".shstrtab";
    for (int i = 0; i < count; i++) text += sizeof ".text." + lengths[i];
    const size_t table = (strings + text + 7) / 8 * 8;
    *bytes = table + sections * sizeof(Elf64_Shdr);
    char *cubin = calloc(1, *bytes + 1);
    if (!cubin) return NULL;
    Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
                         .e_shoff = table,
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shnum = (Elf64_Half)sections,
                         .e_shstrndx = 1};
    memcpy(cubin, &header, sizeof header);
    Elf64_Shdr section = {
        .sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = strings, .sh_size = text};
    memcpy(cubin + table + sizeof section, &section, sizeof section);
    size_t at = 1 + (size_t)sprintf(cubin + strings + 1, ".shstrtab") + 1;
    for (int i = 0; i < count; i++) {
        section = (Elf64_Shdr){.sh_name = (Elf64_Word)at,
                               .sh_type = SHT_PROGBITS,
                               .sh_offset = code + (size_t)i * CODE,
                               .sh_size = CODE};
        memcpy(cubin + table + ((size_t)i + 2) * sizeof section, &section, sizeof section);
        at += (size_t)sprintf(cubin + strings + at, ".text.%.*s", (int)lengths[i], names[i]) + 1;
    }
    return cubin;
}

static char *make_log(const char *const names[], const size_t lengths[], int count)
{
    static int compiled;
    char *log = calloc(1, (size_t)count * 512 + 1), *at = log;
    const int spills = getenv("STUB_SPILLS") && compiled++ < 2 ? 8 : 0;
    for (int i = 0; i < count && log; i++)
        at += snprintf(
            at, 512,
            "ptxas info    : Function properties for %.*s\n    0 bytes stack frame, %d bytes spill stores, 0 bytes spill loads\n",
            (int)lengths[i], names[i], spills);
    return log;
}

int nvrtcCompileProgram(NvrtcProgram p, int count, const char *const *options)
{
    const char *names[MOST_KERNELS];
    size_t lengths[MOST_KERNELS];
    (void)count, (void)options;
    ENTRY();
    const int kernels = find_kernels(p->text, names, lengths);
    p->cubin = make_cubin(names, lengths, kernels, &p->bytes);
    p->log = make_log(names, lengths, kernels);
    return p->cubin && p->log ? 0 : NVRTC_OUT_OF_MEMORY;
}

int nvrtcGetCUBINSize(NvrtcProgram p, size_t *bytes)
{
    ENTRY();
    *bytes = p->bytes;
    return 0;
}
int nvrtcGetCUBIN(NvrtcProgram p, char *cubin)
{
    ENTRY();
    memcpy(cubin, p->cubin, p->bytes);
    return 0;
}
int nvrtcGetPTXSize(NvrtcProgram p, size_t *bytes)
{
    ENTRY();
    *bytes = strlen(p->text) + 1;
    return 0;
}
int nvrtcGetPTX(NvrtcProgram p, char *ptx)
{
    ENTRY();
    memcpy(ptx, p->text, strlen(p->text) + 1);
    return 0;
}
int nvrtcGetProgramLogSize(NvrtcProgram p, size_t *bytes)
{
    ENTRY();
    *bytes = p->log ? strlen(p->log) + 1 : 0;
    return 0;
}
int nvrtcGetProgramLog(NvrtcProgram p, char *log)
{
    ENTRY();
    memcpy(log, p->log ? p->log : "", p->log ? strlen(p->log) + 1 : 1);
    return 0;
}
