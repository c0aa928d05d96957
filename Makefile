# make            build/fusec, build/libfusec.a, build/libfusec.so
# make check      everything that can be checked without a GPU; check-gpu: the rest
# make demo       a short tour
# make help       all targets

CC       = gcc
CLANG    = clang
PREFIX   = /usr/local
DESTDIR  =
BUILD    = build
OPT      = -O2 -g
EXTRA    =
VERSION := $(shell sed -n 's/^\#define FUSEC_VERSION "\(.*\)"/\1/p' runtime/fusec.h 2>/dev/null)

STRICT   = -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes \
           -Wmissing-prototypes -Wframe-larger-than=32768
LOOSE    = -std=c11 -Wall -Wextra
CODEGEN  = -fPIC -fvisibility=hidden
# As Debian builds its packages. The builds with sanitizers leave it out: they check the same calls themselves.
HARDENING = -fstack-protector-strong -fstack-clash-protection -Wformat -Werror=format-security \
            $(if $(findstring x86_64,$(shell $(CC) -dumpmachine)),-fcf-protection) -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
PIE      = -pie
HARD_LINK = -Wl,-z,relro -Wl,-z,now
# The number in the SONAME changes when programs must be compiled anew.
ABI      = 0
SHARED   = build/libfusec.so.$(VERSION)
CPPFLAGS = -D_GNU_SOURCE -DXXH_INLINE_ALL -Isrc -Iruntime -Ibuild/gen
LDLIBS   = -lm -ldl -lpthread
JANSSON  = $(or $(wildcard $(shell pkg-config --variable=libdir jansson 2>/dev/null)/libjansson.a),\
           $(error no libjansson.a: `make deps` installs what the build needs))

GEN      = build/gen/scan.c build/gen/fuse.c
INC      = build/gen/tables.inc build/gen/version.inc build/gen/std.inc build/gen/prelude.inc build/gen/sim.inc build/gen/abi.inc build/gen/completions_bash.inc build/gen/completions_zsh.inc build/gen/launcher_types.inc build/gen/launcher_launch.inc build/gen/fuse.h
STAGES   = base frontend graph analyze reference schedule codegen explain
LIBRARY  = $(wildcard src/*.c $(STAGES:%=src/%/*.c) runtime/*.c)
# The command line, and the simulator behind its --device sim.
CLI      = $(wildcard src/cli/*.c) $(wildcard tests/sim/*.c)
FAULT_PROGRAMS = tests/faults/inject.c tests/faults/stub_cuda.c tests/faults/stub_nvrtc.c tests/faults/calls.c tests/faults/faults.c tests/faults/run.c tests/faults/folder.c
PROGRAMS = tests/growth.c tests/texts.c tests/gpu_cases.c tests/gpu_order.c tests/sim_cases.c tests/mutate.c tests/sim_run.c
SUITES   = $(filter-out $(PROGRAMS),$(wildcard tests/*.c))
FIRST_PROGRAM = 1000000
PROGRAMS_A_CHECK = 10
PROGRAMS_OF_ALL = 200
PROP     = $(wildcard tests/prop/*.c)
# These are C++ of one macro a line, like the CUDA that they stand in for.
FORMATTED = $(filter-out tests/sim/sim.h tests/sim/twins.h,$(wildcard src/*.[ch] src/*/*.[ch] runtime/*.[ch] runtime/python/*/*.[ch] tests/*.[ch] tests/*/*.[ch] examples/*.c))

objects      = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
LIBRARY_OBJ  = $(call objects,$(LIBRARY) $(GEN))
CLI_OBJ      = $(call objects,$(CLI))
PARTS_OBJ    = $(LIBRARY_OBJ) $(filter-out %/main.o,$(CLI_OBJ))
SUITES_OBJ   = $(call objects,$(SUITES) $(filter-out tests/prop/prop.c,$(PROP)))

.PHONY: all help deps demo check checks check-gpu check-torch wheel suites texts faults recipes sim-all check-whole mutate bench chosen peers peers-busy peers-tiles bless layers lint format check-format fuzz pages drawings install clean
.DELETE_ON_ERROR:
# Two jobs where the caller gave no number.
PARALLEL = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j2)
MAKEFLAGS += --no-print-directory

all: build/fusec build/libfusec.a build/libfusec.so build/libfusec_torch.so build/fusec.cuh

help:
	@sed -n 's/^## *//p' Makefile

## all        the program and the libraries (default)
## deps       install what the build needs
deps:
	@.ci/deps

# ---- generated sources -----------------------------------------------------------------------

build/gen/scan.c: grammar/fuse.re
	@mkdir -p $(@D)
	@echo gen $@
	@re2c -W -Werror -i --no-generation-date --no-version -o $@ $<

build/gen/fuse.c: grammar/fuse.y
	@mkdir -p $(@D)
	@echo gen $@
	@lemon -dbuild/gen -q -l $<
build/gen/fuse.h: build/gen/fuse.c

build/gen/version.inc: runtime/fusec.h
	@mkdir -p $(@D)
	@echo gen $@
	@sed -n 's/^#define FUSEC_VERSION//p' $< > $@

# What the simulator compiles texts after.
build/gen/sim.h: tests/sim/sim.h tests/sim/twins.h
	@mkdir -p $(@D)
	@echo gen $@
	@cat $^ > $@

# A text as the bytes of a C array, closed by a zero.
# The tables of measured schedules, NAME of src/targets/ARCH_NAME.tuned each.
build/gen/tables.inc: $(wildcard src/targets/*.tuned)
	@mkdir -p $(@D)
	@echo gen $@
	@{ for f in $^; do n=$${f##*_}; echo "static const char table_$${n%.tuned}[] = {"; \
	    od -An -v -tu1 $$f | sed 's/  */,/g; s/^,//; s/$$/,/'; echo '0};'; done; \
	    echo 'static const struct { const char *gpu, *rows; } tables[] = {'; \
	    for f in $^; do n=$${f##*_}; n=$${n%.tuned}; echo "{\"$$n\", table_$$n},"; done; echo '{"", ""}};'; } > $@

build/gen/std.inc: src/frontend/std.fuse
build/gen/prelude.inc: build/gen/prelude.cuh
build/gen/sim.inc: build/gen/sim.h
build/gen/abi.inc: tests/sim/abi.h
build/gen/completions_bash.inc: src/cli/completions/fusec.bash
build/gen/completions_zsh.inc: src/cli/completions/fusec.zsh
build/gen/launcher_types.inc: src/codegen/launcher/types.c
build/gen/launcher_launch.inc: src/codegen/launcher/launch.c
build/gen/%.inc:
	@mkdir -p $(@D)
	@echo gen $@
	@{ od -An -v -tu1 $< | sed 's/  */,/g; s/^,//; s/$$/,/'; echo 0; } > $@

# The device helpers, in the order in which texts print them.
PRELUDE  = $(addprefix src/codegen/prelude/,$(addsuffix .cuh,types vector copy store reduce online moments barrier row \
           ring cluster group sums column_moments))
build/gen/prelude.cuh: $(PRELUDE)
	@mkdir -p $(@D)
	@echo gen $@
	@grep -hv '^//:' $(PRELUDE) > $@

# The same as a header, for texts that include it (--prelude include): all sections, without the marks.
build/fusec.cuh: build/gen/prelude.cuh runtime/fusec.h
	@echo gen $@
	@{ echo '// fusec.cuh: the device helpers that kernels of fusec $(VERSION) call (fusec FILE --prelude include).'; \
	  echo '#ifndef FUSEC_CUH'; echo '#define FUSEC_CUH'; echo; \
	  sed '/^\/\/@ /d; s/ *\/\/? .*//' $<; \
	  echo '#endif'; } > $@

# The names of the suites that tests/suites.h declares.
build/gen/suites.inc: tests/suites.h
	@mkdir -p $(@D)
	@echo gen $@
	@sed -n 's/^Suite \*\([a-z0-9_]*\)(void);.*/"\1",/p' $< > build/gen/suite_names.inc
	@sed -n 's/^Suite \*\([a-z0-9_]*\)(void);.*/\1,/p' $< > $@

# ---- objects, program, libraries ---------------------------------------------------------------

$(BUILD)/obj/build/gen/%.o: build/gen/%.c | $(INC)
	@mkdir -p $(@D)
	@echo cc $<
	@$(CC) $(LOOSE) $(OPT) $(HARDENING) $(EXTRA) $(CODEGEN) $(CPPFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/obj/tests/run_suites.o: build/gen/suites.inc

# Clocks are joined at each barrier of the simulator, so by vectors.
$(BUILD)/obj/tests/sim/clock.o: OPT += -O3

# Tests are compiled oftener than they run for long.
$(BUILD)/obj/tests/test_%.o: override OPT += -O0
$(BUILD)/obj/tests/test_%.o: HARDENING =

$(BUILD)/obj/%.o: %.c | $(INC)
	@mkdir -p $(@D)
	@echo cc $<
	@$(CC) $(STRICT) $(OPT) $(HARDENING) $(EXTRA) $(CODEGEN) $(CPPFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/fusec: $(LIBRARY_OBJ) $(CLI_OBJ)
	@echo link $@
	@$(CC) $(OPT) $(EXTRA) $(PIE) $(HARD_LINK) $^ $(JANSSON) $(LDLIBS) -o $@

# One object whose only global names are the public ones.
build/libfusec.a: $(LIBRARY_OBJ)
	@echo link $@
	@ld -r -o build/libfusec.o $^ $(JANSSON)
	@objcopy -w --keep-global-symbol='fusec_*' build/libfusec.o
	@rm -f $@
	@ar rcs $@ build/libfusec.o

$(SHARED): $(LIBRARY_OBJ) runtime/libfusec.map
	@echo link $@
	@$(CC) -shared $(OPT) $(HARD_LINK) -Wl,--exclude-libs,ALL -Wl,-z,defs -Wl,-soname,libfusec.so.$(ABI) \
	    -Wl,--version-script=runtime/libfusec.map $(LIBRARY_OBJ) $(JANSSON) $(LDLIBS) -o $@

# The operators of fusec.torch: C linkage to libtorch alone, found at run time.
TORCH_KERNELS = $(wildcard runtime/python/kernels/*.c)
build/libfusec_torch.so: $(call objects,$(TORCH_KERNELS)) build/libfusec.so
	@echo link $@
	@$(CC) -shared $(OPT) $(HARD_LINK) -Wl,-z,defs -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN' \
	    $(filter %.o,$^) -Lbuild -lfusec $(LDLIBS) -o $@
$(call objects,$(TORCH_KERNELS)): EXTRA += -fexceptions

build/libfusec.so: $(SHARED)
	@ln -sf libfusec.so.$(VERSION) build/libfusec.so.$(ABI)
	@ln -sf libfusec.so.$(ABI) $@

$(BUILD)/suites: $(PARTS_OBJ) $(SUITES_OBJ)
	@echo link $@
	@$(CC) $(OPT) $(EXTRA) $^ $(JANSSON) $(shell pkg-config --libs check) $(LDLIBS) -o $@

$(BUILD)/gpu_cases: $(PARTS_OBJ) $(call objects,tests/gpu_cases.c)
	@echo link $@
	@$(CC) $(OPT) $(EXTRA) $^ $(JANSSON) $(LDLIBS) -o $@

$(BUILD)/gpu_order: $(LIBRARY_OBJ) $(call objects,tests/gpu_order.c)
	@echo link $@
	@$(CC) $(OPT) $(EXTRA) $^ $(JANSSON) $(LDLIBS) -o $@

$(BUILD)/growth: $(LIBRARY_OBJ) $(call objects,tests/growth.c)
	@echo link $@
	@$(CC) $(OPT) $(EXTRA) $^ $(JANSSON) $(LDLIBS) -o $@

$(BUILD)/sim_cases: $(PARTS_OBJ) $(call objects,tests/sim_cases.c tests/sim_run.c)
	@echo link $@
	@$(CC) $(OPT) $(EXTRA) $^ $(JANSSON) $(LDLIBS) -o $@

$(BUILD)/prop: $(PARTS_OBJ) $(call objects,$(PROP))
	@echo link $@
	@$(CC) $(OPT) $(EXTRA) $^ $(JANSSON) $(LDLIBS) -o $@

$(BUILD)/texts: $(LIBRARY_OBJ) $(call objects,tests/texts.c tests/programs.c)
	@echo link $@
	@$(CC) $(OPT) $(EXTRA) $^ $(JANSSON) $(LDLIBS) -o $@

$(BUILD)/mutate: $(PARTS_OBJ) $(call objects,tests/mutate.c tests/sim_run.c)
	@echo link $@
	@$(CC) $(OPT) $(EXTRA) $^ $(JANSSON) $(LDLIBS) -o $@

# The injector, the stub libraries, the driver and the calls of `make faults`.
FAULTS = build/faults/inject.so build/faults/libcuda.so.1 build/faults/libnvrtc_stub.so build/faults/calls build/faults/faults

build/faults/inject.so: tests/faults/inject.c tests/faults/faults.h
build/faults/libcuda.so.1: tests/faults/stub_cuda.c tests/faults/faults.h runtime/driver.h runtime/driver.def
build/faults/libnvrtc_stub.so: tests/faults/stub_nvrtc.c tests/faults/faults.h runtime/nvrtc.h
build/faults/inject.so build/faults/libcuda.so.1 build/faults/libnvrtc_stub.so:
	@mkdir -p $(@D)
	@echo link $@
	@$(CC) $(STRICT) -O1 -g $(CODEGEN) $(CPPFLAGS) -shared -Wl,-soname,$(@F) $< -o $@ -ldl

build/faults/calls: $(BUILD)/obj/tests/faults/calls.o build/libfusec.a
	@mkdir -p $(@D)
	@echo link $@
	@$(CC) $(OPT) $^ $(LDLIBS) -o $@

build/faults/faults: $(call objects,tests/faults/faults.c tests/faults/run.c tests/faults/folder.c)
	@mkdir -p $(@D)
	@echo link $@
	@$(CC) $(OPT) $^ -o $@

# The stub driver with as many SMs as an H100 and all its names exported, for programs that link libcuda.
build/launchers/libcuda.so.1: tests/faults/stub_cuda.c tests/faults/faults.h runtime/driver.h runtime/driver.def
	@mkdir -p $(@D)
	@echo link $@
	@$(CC) $(STRICT) -O1 -g -fPIC -DSTUB_SMS=132 $(CPPFLAGS) -shared -Wl,-soname,$(@F) $< -o $@ -ldl

FUZZERS = $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))

$(BUILD)/replay_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(BUILD)/obj/tests/fuzz/replay.o $(PARTS_OBJ)
	@echo link $@
	@$(CC) $(OPT) $(EXTRA) $^ $(JANSSON) $(LDLIBS) -o $@

$(BUILD)/fuzz_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(PARTS_OBJ)
	@echo link $@
	@$(CC) $(OPT) -fsanitize=fuzzer,address,undefined $^ $(JANSSON) $(LDLIBS) -o $@
.PRECIOUS: $(BUILD)/obj/tests/fuzz/%.o

# ---- checks ----------------------------------------------------------------------------------------

## check      everything that can be checked without a GPU
check: deps
	@$(MAKE) $(PARALLEL) all build/suites build/sim_cases build/prop build/growth $(FAULTS) build/launchers/libcuda.so.1
	@$(MAKE) wheel
	@$(MAKE) checks

# At a fixed address, with the sanitizers' own code in it, fusec starts sooner.
SANITIZED = BUILD=build/asan HARDENING= OPT='-Og -g1' PIE='-no-pie -static-libasan -static-libubsan' \
            EXTRA='-Werror -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer'

# Suites run under sanitizers. Without them `make check` runs what is too slow under them, what cannot run under
# them and what tests less there, by the tags of test cases; `make check-whole` runs all.
NOT_SANITIZED = slow fork
ONLY_PLAIN = $(NOT_SANITIZED) plain

# All suites, two at a time; what one says only if it fails, for they provoke many complaints.
run_suites = rm -f $(1)/*.suite && \
    sed -n 's/^Suite \*\(.*\)_suite(void);/\1/p' tests/suites.h | xargs -P 2 -I @ sh -c \
    '$(1)/suites @ >$(1)/@.suite 2>&1 || { cat $(1)/@.suite; exit 1; }' && \
    awk '/: skipped/; /, a sample$$/; /^[0-9]+%: Checks:/ { checks += $$3 } \
        END { print checks + 0 " passed, 0 failed"; exit !checks }' $(1)/*.suite

# Thousands of compilations take and free some MB each, which the C library keeps for the next.
checks: export MALLOC_TRIM_THRESHOLD_ = 268435456
checks: export MALLOC_MMAP_THRESHOLD_ = 268435456
checks:
	@tests/beside.sh tests/layers.sh '$(MAKE) check-format'
	@$(MAKE) $(PARALLEL) lint
	@echo '-- suites, what sanitizers leave out' && export CK_INCLUDE_TAGS="$(ONLY_PLAIN)" && $(call run_suites,build)
	@$(MAKE) $(PARALLEL) $(SANITIZED) build/asan/suites build/asan/fusec \
	    $(FUZZERS:%=build/asan/replay_%)
	@echo '-- suites under ASan and UBSan' && export CK_FORK=no CK_EXCLUDE_TAGS="$(NOT_SANITIZED)" && \
	    $(call run_suites,build/asan)
	@echo '-- the command line, in turn as it is and under ASan and UBSan, and what else takes one core'
	@tests/beside.sh 'FUSEC_IN_TURN=$$PWD/build/asan/fusec JOBS=1 tests/cli.sh' tests/recipes.sh tests/check_nvrtc.sh \
	    'build/prop --replay tests/cases --every 4 --device sim --schedules --texts 1 --jobs 1' tests/golden.sh \
	    'echo "-- random programs" && build/prop --first $(FIRST_PROGRAM) --count $(PROGRAMS_A_CHECK) --device sim --schedules --texts 3 --jobs 1' \
	    'echo "-- faults, a sample" && build/faults/faults --sample 1' tests/growth.sh tests/growth_files.sh tests/docs.sh tests/library.sh tests/launchers.sh tests/python.sh \
	    'tests/fuzz.sh replay' tests/sim/check_prelude.sh
	@tests/sim.sh
	@echo 'make check: all passed'

## check-whole  what `make check` runs a sample of, whole; after `make check`, whose builds it takes
check-whole: export MALLOC_TRIM_THRESHOLD_ = 268435456
check-whole: export MALLOC_MMAP_THRESHOLD_ = 268435456
check-whole:
	@$(MAKE) $(PARALLEL) all build/suites build/sim_cases build/prop
	@$(MAKE) $(PARALLEL) $(SANITIZED) build/asan/fusec
	@echo '-- suites, whole' && export FUSEC_TEST_WHOLE=1 && $(call run_suites,build)
	@tests/beside.sh 'FUSEC=$$PWD/build/asan/fusec JOBS=1 tests/cli.sh' 'JOBS=1 tests/cli.sh' 'tests/check_nvrtc.sh all'
	@$(MAKE) sim-all
	@echo '-- random programs' && build/prop --first $(FIRST_PROGRAM) --count $(PROGRAMS_OF_ALL) --device sim --schedules --jobs 2
	@echo 'make check-whole: all passed'

## suites     the Check suites alone
suites: build/suites
	build/suites

## lint       clang compiles every source with warnings as errors
LINTED = $(LIBRARY) $(TORCH_KERNELS) $(CLI) $(SUITES) $(PROGRAMS) $(FAULT_PROGRAMS)
INCLUDED = $(INC) build/gen/suites.inc $(foreach folder,src runtime tests,$(wildcard $(foreach kind,h def,$(folder)/*.$(kind) $(folder)/*/*.$(kind) $(folder)/*/*/*.$(kind))))
lint: build/clang.linted
	@echo '-- clang: $(words $(LINTED)) sources without a warning'
# Sources that are newer than the last time; all, if anything is that they include.
build/clang.linted: $(LINTED) $(INCLUDED) | $(GEN)
	@tests/lint.sh '$(CLANG) $(STRICT) -Werror $(CPPFLAGS)' $(if $(filter-out %.c,$?),$(LINTED),$?)
	@touch $@

## layers     the include graph follows the flow
layers:
	@tests/layers.sh

## check-gpu  every example at many sizes on the GPU, against the reference
check-gpu: deps
	@$(MAKE) all build/gpu_cases build/gpu_order
	@$(MAKE) wheel
	@tests/gpu.sh
	@tests/python.sh gpu

## wheel      the Python package, build/fusec-VERSION-py3-none-manylinux_….whl
wheel: build/libfusec.so build/libfusec_torch.so
	@rm -f build/fusec-*.whl
	@FUSEC_BUILT=1 python3 runtime/python/backend.py build

## check-torch  the Python package on torch, which is fetched from the Python registry into build/
check-torch: deps
	@$(MAKE) $(PARALLEL) build/libfusec.so build/libfusec_torch.so
	@$(MAKE) wheel
	@tests/python.sh torch

## bench      bandwidth of the examples over a table of sizes, on a GPU
bench: all
	@tests/bench/table.sh

## chosen     the schedules that are chosen beside the best ones of `fusec tune`, on a GPU
chosen: all
	@tests/bench/chosen.sh

## peers      the same sizes beside PyTorch, torch.compile, Liger, quack, Transformer Engine (Python with torch, on a GPU)
peers: build/libfusec.so
	@python3 tests/bench/peers.py --json build/peers.json --sizes table --limit 500 --resume
	@python3 tests/bench/peers.py --report build/peers.json
	@$(MAKE) peers-tiles

## peers-tiles programs beyond rows along the last axis (norms over channels, block scales, ...) beside torch.compile
peers-tiles: build/libfusec.so
	@python3 tests/bench/peers.py --tiles --json build/peers_tiles.json --limit 400 --resume

## peers-busy the same, for up to 512 rows forward and 4096 backward, behind other kernels in a stream that is never idle
peers-busy: build/libfusec.so
	@python3 tests/bench/peers.py --busy --json build/peers_busy.json --sizes busy,short --limit 500 --resume
	@python3 tests/bench/peers.py --report build/peers_busy.json

## texts      a hash of all that is printed for many programs, lengths, dtypes and GPUs
texts: build/texts
	@ls examples/*.fuse tests/cases/*.fuse tests/golden/*.fuse tests/long/*.fuse | xargs -P 2 -n 4 build/texts | sort

## faults     memory runs out, calls fail: each call of the C library and of the driver in turn, in all commands
faults: build/fusec $(FAULTS)
	@build/faults/faults --jobs 2

## recipes    what docs/hacking.md says of adding an operation and a reduction, in a copy of the tree
recipes: all build/prop
	@tests/recipes.sh

## sim-all    examples and kept programs on the simulator by all schedules, of which `make check` runs a sample
sim-all: build/fusec build/sim_cases build/prop
	@tests/sim.sh all
	@build/prop --replay tests/cases --device sim --schedules --jobs 2

## mutate     break the generated text in one place at a time: does the simulator tell?
mutate: build/mutate
	@tests/mutate.sh

## bless      write the goldens anew
bless: build/fusec
	tests/golden.sh bless

## fuzz       fuzz the readers of text, tensors, cache, tables and tuning file with libFuzzer (SECONDS_EACH=60)
fuzz: $(INC) $(GEN)
	@$(MAKE) BUILD=build/fuzz CC=$(CLANG) HARDENING= OPT='-O1 -g' \
	    EXTRA='-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all' $(FUZZERS:%=build/fuzz/fuzz_%)
	@tests/fuzz.sh

## format     clang-format all sources
format:
	@clang-format -i $(FORMATTED)

## check-format  fails where `make format` would change a file
check-format:
	@clang-format --dry-run -Werror $(FORMATTED)
	@echo '-- format: $(words $(FORMATTED)) sources as `make format` leaves them'

## pages      the reference pages and syntax files that are made from the sources
pages:
	python3 docs/generate

## drawings   docs/img/*.svg: from draw.py, pipeline.dot, and docs/log/data for the plots
drawings:
	python3 docs/img/draw.py
	python3 tests/bench/figures.py --plots
	dot -Tsvg docs/img/pipeline.dot -o docs/img/pipeline.svg

## demo       check, explain, print and run one example
demo: deps
	@$(MAKE) all
	@tests/demo.sh

## install    into $(DESTDIR)$(PREFIX)
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig \
	    $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 755 build/fusec $(DESTDIR)$(PREFIX)/bin
	install -m 644 build/libfusec.a $(DESTDIR)$(PREFIX)/lib
	install -m 755 $(SHARED) $(DESTDIR)$(PREFIX)/lib
	ln -sf libfusec.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/libfusec.so.$(ABI)
	ln -sf libfusec.so.$(ABI) $(DESTDIR)$(PREFIX)/lib/libfusec.so
	install -m 644 runtime/fusec.h build/fusec.cuh $(DESTDIR)$(PREFIX)/include
	install -m 644 docs/fusec.1 $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions
	build/fusec completions bash -o $(DESTDIR)$(PREFIX)/share/bash-completion/completions/fusec
	build/fusec completions zsh -o $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_fusec
	printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/lib' 'includedir=$${prefix}/include' '' \
	    'Name: fusec' 'Description: fusion compiler for normalization graphs' \
	    'Version: $(VERSION)' 'Libs: -L$${libdir} -lfusec -lm' \
	    'Libs.private: -ldl -lpthread' 'Cflags: -I$${includedir}' \
	    > $(DESTDIR)$(PREFIX)/lib/pkgconfig/fusec.pc
	install -d $(DESTDIR)$(PREFIX)/lib/cmake/fusec
	for file in fusec-config fusec-config-version; do \
	    sed 's/@VERSION@/$(VERSION)/g; s/@ABI@/$(ABI)/g' runtime/cmake/$$file.cmake.in \
	        > $(DESTDIR)$(PREFIX)/lib/cmake/fusec/$$file.cmake || exit 1; done

## clean      remove build/
clean:
	rm -rf build

-include $(shell find build -name '*.d' 2>/dev/null)
