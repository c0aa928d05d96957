/* object.c: see object.h. The text is compiled in a directory of its own, beside the
 * headers it needs; the names and places of its __shared__ variables are read from the
 * object's symbol table. */
#include "object.h"

#include "child.h"
#include "file_read.h"
#include "library.h"
#include "reason.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char header_text[] = {
#include "sim.inc"
};
static const char abi_text[] = {
#include "abi.inc"
};
static const char prelude_text[] = {
#include "prelude.inc"
};

enum { OUTPUT = 8192, PATH = 4096 };

/* ---- the compiler ---- */

static bool can_run(const char *compiler)
{
    char said[OUTPUT];
    char *words[] = {(char *)(uintptr_t)compiler, (char *)(uintptr_t) "--version", NULL};
    return run_program(words, said, sizeof said) == 0;
}

/* NULL: there is none; errno ENOMEM: that is not known. */
static const char *find_compiler(void)
{
    const char *named = secure_getenv("CXX");
    errno = 0;
    if (named && *named) return can_run(named) ? named : NULL;
    return can_run("g++") ? "g++" : errno != ENOMEM && can_run("clang++") ? "clang++" : NULL;
}

/* ---- the directory ---- */

static void path_in(const SimObject *o, const char *file, char *path)
{
    snprintf(path, PATH, "%s/%s", o->directory, file);
}

static FILE *create(const SimObject *o, const char *file)
{
    char path[PATH];
    path_in(o, file, path);
    return fopen(path, "w");
}

/* Whether all that was written to it is there. */
static bool close_written(FILE *f)
{
    const bool good = fflush(f) == 0 && !ferror(f);
    const int why = errno;
    if (fclose(f) != 0) return false;
    errno = why;
    return good;
}

static bool write_text(const SimObject *o, const char *file, const char *text)
{
    FILE *f = create(o, file);
    if (!f) return false;
    fputs(text, f);
    return close_written(f);
}

/* Is there a twin of the section that begins with this line? */
static bool has_twin(const char *line, size_t length)
{
    for (const char *at = header_text; (at = strstr(at, "\n//@ ")); at++)
        if (strncmp(at + 1, line, length) == 0 && at[1 + length] == '\n') return true;
    return false;
}

/* Whether the text brings the section that begins with this line; a text without any prelude of its
 * own may use all that is no PTX. */
static bool is_wanted(const char *text, const char *line)
{
    const char *body = line + strcspn(line, "\n"), *end = strstr(body, "\n//@ ");
    size_t length = end ? (size_t)(end - body) : strlen(body);
    const char *optional = memmem(body, length, "    //? ", 8); /* the text may lack such a line */
    while (optional && optional > body && *optional != '\n') optional--;
    if (optional) length = (size_t)(optional - body);
    while (length > 0 && body[length - 1] == '\n') length--;
    if (strstr(text, "#ifndef FUSEC_SIM")) return memmem(text, strlen(text), body, length) != NULL;
    return memmem(body, length, "asm", 3) == NULL;
}

/* The prelude's sections that the text wants and sim.h has no twins of; the lines of the others
 * stay, empty. */
static bool write_prelude(const SimObject *o, const char *prelude, const char *text)
{
    FILE *f = create(o, "prelude.cuh");
    if (!f) return false;
    bool kept = true;
    for (const char *line = prelude, *end; *line; line = end) {
        const size_t length = strcspn(line, "\n");
        end = line + length + (line[length] == '\n');
        if (strncmp(line, "//@ ", 4) == 0) kept = is_wanted(text, line) && !has_twin(line, length);
        fprintf(f, "%.*s\n", kept ? (int)length : 0, line);
    }
    return close_written(f);
}

static bool write_unit(const SimObject *o, const char *const *kernels, int count)
{
    FILE *f = create(o, "unit.cpp");
    if (!f) return false;
    fputs("#include \"sim.h\"\n#include \"prelude.cuh\"\n#include \"kernel.cu\"\n", f);
    for (int i = 0; i < count; i++) fprintf(f, "SIM_KERNEL(%s)\n", kernels[i]);
    return close_written(f);
}

/* Where that of a run is made, but for one that is kept. */
static const char *parent_directory(void)
{
    const char *tmp = environment_path("TMPDIR");
    return tmp ? tmp : "/tmp";
}

/* Code is loaded from there, so it must be ours alone; else `why` says what it is. */
static bool is_trusted(const char *directory, const char **why)
{
    struct stat about;
    *why = stat(directory, &about) == 0 ? file_distrust(&about) : reason_of(errno);
    return !*why;
}

static bool make_directory(SimObject *o, const char **why)
{
    const char *keep = secure_getenv("FUSEC_SIM_KEEP");
    char path[PATH];
    o->keep = keep && *keep;
    snprintf(path, sizeof path, "%s/fusec-sim-XXXXXX", parent_directory());
    bool made = o->keep ? mkdir(keep, 0700) == 0 || errno == EEXIST : mkdtemp(path) != NULL;
    o->directory = made ? realpath(o->keep ? keep : path, NULL) : NULL;
    *why = reason_of(errno);
    if (made && !o->directory && !o->keep) rmdir(path);
    return o->directory && is_trusted(o->directory, why);
}

static void remove_directory(const SimObject *o)
{
    static const char *const files[] = {"sim.h",    "abi.h",  "prelude.cuh", "kernel.cu",
                                        "unit.cpp", "unit.o", "unit.so"};
    char path[PATH];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        path_in(o, files[i], path);
        unlink(path);
    }
    rmdir(o->directory);
}

/* ---- compiling ---- */

static bool is_clang(const char *compiler)
{
    return strstr(compiler, "clang") != NULL;
}

static bool say_out_of_memory(char *message, size_t size)
{
    snprintf(message, size, "out of memory");
    return false;
}

static bool compile_unit(const SimObject *o, const char *compiler, char *message, size_t size)
{
    char unit[PATH], object[PATH], shared[PATH], said[OUTPUT], *words[24];
    int n = 0;
    path_in(o, "unit.cpp", unit);
    path_in(o, "unit.o", object);
    path_in(o, "unit.so", shared);
    const char *const flags[] = {
        compiler,
        "-std=c++17",
        "-Og",                  /* compiling takes longer than running */
        o->keep ? "-g" : "-g1", /* variables: for a debugger */
        "-fPIC",
        "-c",
        "-fvisibility=hidden",
        "-fno-exceptions",
        "-fno-rtti",
        "-fno-math-errno",
        "-ffp-contract=off",
        "-w",
#if __GNUC__ >= 12
        "-ftrivial-auto-var-init=pattern", /* what nobody has set is seen */
#endif
        "-fsanitize=thread",
        "-DFUSEC_SIM"
    };
    const char *const gcc_only[] = {"-fno-extern-tls-init", "-fno-ipa-reference-addressable"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        words[n++] = (char *)(uintptr_t)flags[i];
    for (size_t i = 0; i < 2 && !is_clang(compiler); i++)
        words[n++] = (char *)(uintptr_t)gcc_only[i];
    words[n++] = (char *)(uintptr_t) "-o";
    words[n++] = object;
    words[n++] = unit;
    words[n] = NULL;
    /* linked without the sanitizer, whose place sim.h takes, and without the C++ library,
     * which nothing needs and ld would spend most of its time on; -Bsymbolic: a kernel named
     * like a function of the C library is the one that is meant */
    char *link[] = {(char *)(uintptr_t)compiler,
                    (char *)(uintptr_t) "-shared",
                    (char *)(uintptr_t) "-nostdlib",
                    (char *)(uintptr_t) "-Wl,-Bsymbolic",
                    (char *)(uintptr_t) "-o",
                    shared,
                    object,
                    (char *)(uintptr_t) "-lm",
                    (char *)(uintptr_t) "-lgcc",
                    NULL};
    errno = 0;
    if (run_program(words, said, sizeof said) == 0 && run_program(link, said, sizeof said) == 0)
        return true;
    if (errno == ENOMEM) return say_out_of_memory(message, size);
    snprintf(message, size, "%s cannot compile the generated text:\n%s", compiler, said);
    return false;
}

/* ---- loading ---- */

static int find_segments(struct dl_phdr_info *info, size_t size, void *data)
{
    SimObject *o = data;
    (void)size;
    uintptr_t begin = info->dlpi_addr, end = begin;
    size_t shared = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && begin + p->p_vaddr + p->p_memsz > end)
            end = begin + p->p_vaddr + p->p_memsz;
        if (p->p_type == PT_TLS) shared = p->p_memsz;
    }
    if ((uintptr_t)o->link < begin || (uintptr_t)o->link >= end) return 0;
    o->begin = begin;
    o->end = end;
    o->shared_size = (shared + 4095) / 4096 * 4096;
    return 1;
}

/* The name whose length stands at `at`, as mangled names have it; NULL if there is none.
 */
static const char *counted_name(const char *at, size_t *length)
{
    char *end;
    *length = strtoul(at, &end, 10);
    return end > at && strlen(end) >= *length ? end : NULL;
}

/* "_ZZ3addE7scratch" is scratch of the kernel add. False: out of memory. */
static bool split_symbol(const char *symbol, SharedVariable *v)
{
    const char *e = symbol + strlen(symbol), *name = NULL, *kernel = NULL;
    size_t length = strlen(symbol), kernel_length;
    if (strncmp(symbol, "_ZZ", 3) == 0) {
        kernel = counted_name(symbol + 3, &kernel_length);
        while (!name && --e > symbol)
            if (*e == 'E') name = counted_name(e + 1, &length);
    }
    if (kernel) v->kernel = strndup(kernel, kernel_length);
    v->name = name ? strndup(name, length) : strdup(symbol);
    return v->name && (v->kernel || !kernel);
}

static bool add_shared(SimObject *o, const char *name, const ElfW(Sym) * symbol)
{
    SharedVariable *grown = realloc(o->shared, ((size_t)o->shared_count + 1) * sizeof *o->shared);
    if (!grown) return false;
    o->shared = grown;
    SharedVariable *v = &o->shared[o->shared_count++];
    *v = (SharedVariable){.offset = symbol->st_value, .size = symbol->st_size};
    return split_symbol(name, v);
}

static bool scan_symbols(SimObject *o, const char *file)
{
    const ElfW(Ehdr) *header = (const void *)file;
    const ElfW(Shdr) *sections = (const void *)(file + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB) continue;
        const char *names = file + sections[sections[i].sh_link].sh_offset;
        const ElfW(Sym) *symbols = (const void *)(file + sections[i].sh_offset);
        for (size_t k = 0; k < sections[i].sh_size / sizeof *symbols; k++)
            if (ELF64_ST_TYPE(symbols[k].st_info) == STT_TLS && symbols[k].st_size > 0 &&
                !add_shared(o, names + symbols[k].st_name, &symbols[k]))
                return false;
    }
    return true;
}

static bool read_symbols(SimObject *o)
{
    char path[PATH];
    path_in(o, "unit.so", path);
    FILE *f = fopen(path, "rb");
    struct stat info;
    if (!f) return false;
    char *file = fstat(fileno(f), &info) == 0 ? malloc((size_t)info.st_size) : NULL;
    const bool good = file && fread(file, (size_t)info.st_size, 1, f) == 1 && scan_symbols(o, file);
    const int why = errno;
    free(file);
    fclose(f);
    errno = why;
    return good;
}

static bool load_unit(SimObject *o, char *message, size_t size)
{
    char path[PATH];
    path_in(o, "unit.so", path);
    errno = 0;
    o->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!o->handle && errno == ENOMEM) return say_out_of_memory(message, size);
    o->link = o->handle ? dlsym(o->handle, "sim_link") : NULL;
    if (!o->link) {
        const char *why = dlerror();
        snprintf(message, size, "cannot load the simulated kernel: %s",
                 why ? why : "it has no sim_link");
        return false;
    }
    errno = 0;
    if (dl_iterate_phdr(find_segments, o) && read_symbols(o)) return true;
    if (errno == ENOMEM) return say_out_of_memory(message, size);
    snprintf(message, size, "cannot read the simulated kernel's symbols");
    return false;
}

static bool build(SimObject *o, const char *prelude, const char *text, const char *const *kernels,
                  int count, char *message, size_t size)
{
    const char *compiler = find_compiler();
    if (!compiler && errno == ENOMEM) return say_out_of_memory(message, size);
    if (!compiler) {
        const char *named = secure_getenv("CXX");
        if (named && *named)
            snprintf(message, size,
                     "the simulator's C++ compiler, which $CXX names, cannot be run: %s%s", named,
                     strchr(named, ' ') ? " ($CXX is to be one program, without arguments)" : "");
        else
            snprintf(message, size, "the simulator needs a C++ compiler: $CXX, g++ or clang++");
        return false;
    }
    const char *why;
    if (!make_directory(o, &why)) {
        if (o->keep)
            snprintf(message, size, "cannot use the directory that $FUSEC_SIM_KEEP names, %s: %s",
                     secure_getenv("FUSEC_SIM_KEEP"), why);
        else
            snprintf(message, size, "cannot make a directory in %s ($TMPDIR, else /tmp): %s",
                     parent_directory(), why);
        return false;
    }
    if (!write_text(o, "sim.h", header_text) || !write_text(o, "abi.h", abi_text) ||
        !write_text(o, "kernel.cu", text) || !write_prelude(o, prelude, text) ||
        !write_unit(o, kernels, count)) {
        snprintf(message, size, "cannot write %s: %s", o->directory, reason_of(errno));
        return false;
    }
    return compile_unit(o, compiler, message, size) && load_unit(o, message, size);
}

const char *object_prelude(void)
{
    return prelude_text;
}

SimObject *object_load(const char *text, const char *const *kernels, int kernel_count,
                       char *message, size_t message_size)
{
    return object_load_beside(prelude_text, text, kernels, kernel_count, message, message_size);
}

/* The rooms of the object before, for the next one of this thread: what lies in them matters to
 * none, and new memory takes long to get. Large ones are given back; of stacks few pages are used. */
typedef struct {
    SimRoom stacks, smem, cells;
} Rooms;
static _Thread_local Rooms spare;
static const size_t most_stacks = (size_t)2 << 30, most_kept = (size_t)256 << 20;

static void keep_room(const SimRoom *room, SimRoom *place, size_t most)
{
    SimRoom gone = *room;
    if (room->size > place->size && room->size <= most) {
        gone = *place;
        *place = *room;
    }
    if (gone.at) munmap(gone.at, gone.size);
}

static void keep_rooms(const SimObject *o)
{
    keep_room(&o->stacks, &spare.stacks, most_stacks);
    keep_room(&o->smem, &spare.smem, most_kept);
    keep_room(&o->cells, &spare.cells, most_kept);
}

static void take_rooms(SimObject *o)
{
    o->stacks = spare.stacks;
    o->smem = spare.smem;
    o->cells = spare.cells;
    spare = (Rooms){0};
}

SimObject *object_load_beside(const char *prelude, const char *text, const char *const *kernels,
                              int kernel_count, char *message, size_t message_size)
{
    SimObject *o = calloc(1, sizeof *o);
    if (!o) {
        snprintf(message, message_size, "out of memory");
        return NULL;
    }
    take_rooms(o);
    if (build(o, prelude, text, kernels, kernel_count, message, message_size)) return o;
    object_free(o);
    return NULL;
}

void object_free(SimObject *o)
{
    if (!o) return;
    if (o->handle) dlclose(o->handle);
    if (o->directory && !o->keep) remove_directory(o);
    for (int i = 0; i < o->shared_count; i++) {
        free(o->shared[i].name);
        free(o->shared[i].kernel);
    }
    free(o->shared);
    keep_rooms(o);
    free(o->directory);
    free(o);
}

/* ---- source lines ---- */

/* "…/kernel.cu:45\n" -> "kernel.cu:45"; what follows (discriminators) is dropped. */
static char *short_line(char *line)
{
    char *slash = strrchr(line, '/');
    line[strcspn(line, " \n")] = 0;
    return slash ? slash + 1 : line;
}

/* What addr2line says: one line a level of inlining, the innermost first. */
static void describe_lines(char *said, PlaceText *p)
{
    char *inner = NULL, *outer = NULL;
    for (char *line; (line = strsep(&said, "\n")) && *line;) {
        char *plain = short_line(line);
        if (strncmp(plain, "sim.h", 5) == 0) continue;
        if (!inner) inner = plain;
        outer = plain;
    }
    if (inner && strcmp(outer, inner) != 0)
        snprintf(p->text, PLACE_TEXT, "%.50s, from %.50s", inner, outer);
    else if (inner)
        snprintf(p->text, PLACE_TEXT, "%.100s", inner);
}

const char *object_place(SimObject *o, uint32_t place)
{
    char path[PATH], address[32], said[OUTPUT];
    for (int i = 0; i < PLACES; i++)
        if (o->places[i].text[0] && o->places[i].place == place) return o->places[i].text;
    PlaceText *p = &o->places[o->next_place++ % PLACES];
    path_in(o, "unit.so", path);
    snprintf(address, sizeof address, "0x%x", place);
    char *words[] = {(char *)(uintptr_t) "addr2line", (char *)(uintptr_t) "-ie", path, address,
                     NULL};
    p->place = place;
    snprintf(p->text, PLACE_TEXT, "byte %s of unit.so", address);
    if (run_program(words, said, sizeof said) == 0) describe_lines(said, p);
    return p->text;
}
