/* cubin.c: reads code, which is one cubin or several, one behind another. A cubin is a 64-bit
 * little-endian ELF file. For each kernel K it has
 *
 *     .text.K         its code
 *     .nv.shared.K    a section as large as its static shared memory (from sm_90 on with the 1 KiB
 *                     that the system reserves)
 *     .nv.info        attributes {format, id, bytes, symbol, value}, of which EIATTR_REGCOUNT and
 *                     EIATTR_FRAME_SIZE belong to the function symbol named K
 *
 * Spills are not in the file; `ptxas -v` reports them. Every offset is checked: a damaged file
 * gives "not known", never a read outside. */
#include "cubin.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SECTION_SYMTAB = 2,
    FORMAT_NONE = 1,
    FORMAT_BYTE = 2,
    FORMAT_HALF = 3,
    FORMAT_BYTES = 4,
    EIATTR_FRAME_SIZE = 0x11,
    EIATTR_REGCOUNT = 0x2f,
    RESERVED_SMEM = 1024
};

typedef struct {
    const unsigned char *data;
    size_t bytes;
    uint64_t sections;     /* offset of the section headers */
    unsigned count, names; /* the number of sections; the section that holds their names */
} Elf;

typedef struct {
    const char *name;
    uint32_t type, link;
    uint64_t offset, size, item;
} Section;

static uint64_t read_number(const Elf *elf, uint64_t offset, unsigned bytes)
{
    if (offset > elf->bytes || bytes > elf->bytes - offset) return 0;
    uint64_t value = 0;
    for (unsigned i = bytes; i-- > 0;) value = value << 8 | elf->data[offset + i];
    return value;
}

static bool is_inside(const Elf *elf, uint64_t offset, uint64_t size)
{
    return offset <= elf->bytes && size <= elf->bytes - offset;
}

/* A NUL-ended string at `index` of a string section; "" if it is not inside. */
static const char *read_string(const Elf *elf, uint64_t offset, uint64_t size, uint64_t index)
{
    if (!is_inside(elf, offset, size) || index >= size) return "";
    const char *text = (const char *)elf->data + offset + index;
    return memchr(text, 0, (size_t)(size - index)) ? text : "";
}

static Section section_bounds(const Elf *elf, unsigned index)
{
    uint64_t at = elf->sections + 64ull * index;
    Section s = {"", 0, 0, 0, 0, 0};
    s.type = (uint32_t)read_number(elf, at + 4, 4);
    s.offset = read_number(elf, at + 24, 8);
    s.size = read_number(elf, at + 32, 8);
    s.link = (uint32_t)read_number(elf, at + 40, 4);
    s.item = read_number(elf, at + 56, 8);
    return s;
}

static Section read_section(const Elf *elf, unsigned index)
{
    Section s = section_bounds(elf, index);
    Section names = section_bounds(elf, elf->names);
    uint64_t name = read_number(elf, elf->sections + 64ull * index, 4);
    s.name = read_string(elf, names.offset, names.size, name);
    return s;
}

static bool open_elf(const void *cubin, size_t bytes, Elf *elf)
{
    static const unsigned char magic[] = {0x7f, 'E', 'L', 'F', 2, 1};
    *elf = (Elf){.data = cubin, .bytes = bytes};
    if (bytes < 64 || memcmp(cubin, magic, sizeof magic) != 0) return false;
    elf->sections = read_number(elf, 40, 8);
    elf->count = (unsigned)read_number(elf, 60, 2);
    elf->names = (unsigned)read_number(elf, 62, 2);
    return read_number(elf, 58, 2) == 64 && elf->names < elf->count &&
           is_inside(elf, elf->sections, 64ull * elf->count);
}

static const char *after_prefix(const char *text, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

static bool find_section(const Elf *elf, const char *prefix, const char *kernel, Section *found)
{
    for (unsigned i = 0; i < elf->count; i++) {
        *found = read_section(elf, i);
        const char *rest = after_prefix(found->name, prefix);
        if (rest && strcmp(rest, kernel) == 0) return true;
    }
    return false;
}

/* A multiple of 8, where more follows: an ELF file is aligned so. */
size_t cubin_bytes(const void *code, size_t bytes)
{
    enum { NO_BYTES = 8 /* SHT_NOBITS */ };
    Elf elf;
    if (!open_elf(code, bytes, &elf)) return bytes;
    uint64_t end = elf.sections + 64ull * elf.count;
    const uint64_t segments = read_number(&elf, 32, 8),
                   headers = read_number(&elf, 54, 2) * read_number(&elf, 56, 2);
    if (is_inside(&elf, segments, headers) && segments + headers > end) end = segments + headers;
    for (unsigned i = 0; i < elf.count; i++) {
        const Section s = section_bounds(&elf, i);
        if (s.type != NO_BYTES && is_inside(&elf, s.offset, s.size) && s.offset + s.size > end)
            end = s.offset + s.size;
    }
    end = (end + 7) / 8 * 8;
    return end < bytes ? (size_t)end : bytes;
}

int cubin_count(const void *code, size_t bytes)
{
    int count = 0;
    for (size_t at = 0; at < bytes || !count; count++)
        at += cubin_bytes((const char *)code + at, bytes - at);
    return count;
}

/* Opens the cubin that has the kernel, and finds its text; -1: none has. */
static int find_kernel(const void *code, size_t bytes, const char *kernel, Elf *elf, Section *text)
{
    int index = 0;
    for (size_t at = 0; at < bytes; index++) {
        const char *cubin = (const char *)code + at;
        const size_t own = cubin_bytes(cubin, bytes - at);
        if (open_elf(cubin, own, elf) && find_section(elf, ".text.", kernel, text)) return index;
        at += own;
    }
    return -1;
}

int cubin_of(const void *code, size_t bytes, const char *kernel)
{
    Elf elf;
    Section text;
    return find_kernel(code, bytes, kernel, &elf, &text);
}

static const char *symbol_name(const Elf *elf, const Section *symbols, uint64_t index)
{
    if (symbols->type != SECTION_SYMTAB || symbols->link >= elf->count ||
        index >= symbols->size / 24)
        return "";
    Section names = section_bounds(elf, symbols->link);
    return read_string(elf, names.offset, names.size,
                       read_number(elf, symbols->offset + 24 * index, 4));
}

/* Walks .nv.info and takes the kernel's attributes. */
static void read_attributes(const Elf *elf, const Section *info, const char *kernel, Usage *usage)
{
    Section symbols = {0};
    if (info->link < elf->count) symbols = section_bounds(elf, info->link);
    uint64_t at = info->offset, end = info->offset + info->size;
    while (is_inside(elf, at, 4) && at + 4 <= end) {
        unsigned format = elf->data[at], id = elf->data[at + 1];
        uint64_t bytes = format == FORMAT_BYTES ? read_number(elf, at + 2, 2) : 0;
        if (format < FORMAT_NONE || format > FORMAT_BYTES || bytes > end - at - 4) return;
        if (bytes == 8 && (id == EIATTR_REGCOUNT || id == EIATTR_FRAME_SIZE) &&
            strcmp(symbol_name(elf, &symbols, read_number(elf, at + 4, 4)), kernel) == 0) {
            int value = (int)(read_number(elf, at + 8, 4) & 0x7fffffff);
            *(id == EIATTR_REGCOUNT ? &usage->registers : &usage->stack_bytes) = value;
        }
        at += 4 + bytes;
    }
}

/* The log of ptxas names the architecture; the system's reserve exists from sm_90 on. Without a
 * log: a section that contains the reserve is never smaller than it. */
static int static_smem(const Elf *elf, const char *kernel, const char *log)
{
    Section shared;
    if (!find_section(elf, ".nv.shared.", kernel, &shared) || shared.size > INT32_MAX) return 0;
    int bytes = (int)shared.size;
    const char *arch = log ? strstr(log, "for 'sm_") : NULL;
    bool reserved = arch ? atoi(arch + 8) >= 90 : bytes >= RESERVED_SMEM;
    return reserved && bytes >= RESERVED_SMEM ? bytes - RESERVED_SMEM : bytes;
}

/* "Function properties for K\n … X bytes stack frame, Y bytes spill stores, Z bytes spill
 * loads", in at most nine digits each, so that the sum is an int. */
static int log_spills(const char *log, const char *kernel)
{
    static const char heading[] = "Function properties for ";
    for (const char *at = log; at && (at = strstr(at, heading)) != NULL;) {
        at += sizeof heading - 1;
        size_t length = strcspn(at, " \r\n");
        if (length != strlen(kernel) || memcmp(at, kernel, length) != 0) continue;
        const char *numbers = strchr(at, '\n');
        const char *frame = numbers ? strpbrk(numbers, "0123456789") : NULL;
        int stack, stores, loads;
        if (frame &&
            sscanf(frame, "%9d bytes stack frame, %9d bytes spill stores, %9d bytes spill loads",
                   &stack, &stores, &loads) == 3)
            return stores + loads;
    }
    return -1;
}

bool cubin_usage(const void *code, size_t bytes, const char *log, const char *kernel, Usage *usage)
{
    *usage = (Usage){-1, -1, -1, -1};
    Elf elf;
    Section section;
    if (find_kernel(code, bytes, kernel, &elf, &section) < 0) return false;
    if (find_section(&elf, ".nv.info", "", &section))
        read_attributes(&elf, &section, kernel, usage);
    usage->smem_bytes = static_smem(&elf, kernel, log);
    usage->spill_bytes = log_spills(log, kernel);
    return true;
}

/* An instruction is 16 bytes (sm_70 and later); its last nine bits are the operation. A conditional
 * wait has a branch before it. */
bool cubin_waits_first(const void *code, size_t bytes, const char *kernel)
{
    enum { INSTRUCTION = 16, OPERATION = 0x1ff, ACQBULK = 0x02e };
    static const unsigned refused[] = {0x143 /* CALL */,
                                       0x144 /* CALL */,
                                       0x147 /* BRA */,
                                       0x149 /* BRX */,
                                       0x14d /* EXIT */,
                                       0x180 /* LD */,
                                       0x181 /* LDG */};
    Elf elf;
    Section text;
    if (find_kernel(code, bytes, kernel, &elf, &text) < 0 ||
        !is_inside(&elf, text.offset, text.size))
        return false;
    for (uint64_t at = text.offset; at + INSTRUCTION <= text.offset + text.size;
         at += INSTRUCTION) {
        unsigned operation = (unsigned)read_number(&elf, at, 2) & OPERATION;
        if (operation == ACQBULK) return true;
        for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
            if (operation == refused[i]) return false;
    }
    return false;
}

const char *cubin_kernel_name(const void *code, size_t bytes, int index)
{
    for (size_t at = 0; at < bytes;) {
        Elf elf;
        const char *cubin = (const char *)code + at;
        const size_t own = cubin_bytes(cubin, bytes - at);
        if (!open_elf(cubin, own, &elf)) return NULL;
        for (unsigned i = 0; i < elf.count; i++) {
            const char *name = after_prefix(read_section(&elf, i).name, ".text.");
            if (name && index-- == 0) return name;
        }
        at += own;
    }
    return NULL;
}
