# libgotrace. `make help` lists the targets.
#
# Required flags stand apart from the user's CFLAGS: what the code needs to be correct is not
# optional. Everything is built below build/, but for ./libgotrace.so.

# The newest entry of the list of changes.
VERSION := $(shell sed -n 's/^## \([0-9][^ ]*\).*/\1/p' scripts/CHANGELOG.md | head -n 1)
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
CFLAGS ?= -O2 -g
CXXFLAGS ?= -O1 -g
B := build
SO := libgotrace.so
TOOL := $(B)/gotrace

# Fields that are not named are zero: gcc 10 wants all, unlike later ones.
WARN := -Wall -Wextra -Wno-missing-field-initializers -Wshadow -Wstrict-prototypes $(if $(WERROR),-Werror)
# -fexceptions: hooks are unwound by cancellation and must put their thread's state right.
# -U: Ubuntu's gcc defines it, and then longjmp is __longjmp_chk, which is another hook.
REQUIRED := -std=gnu11 -U_FORTIFY_SOURCE -D_GNU_SOURCE -fPIC -fvisibility=hidden -fexceptions \
	-ftls-model=initial-exec $(WARN) -MMD -MP -I.
# Before glibc 2.34 threads are a library of their own: then programs that we are in have it, too.
THREADS := -Wl,--no-as-needed -pthread -lrt
# After the user's: preload/stacks/unwind.c follows our own frames by their pointers.
FRAMES := -fno-omit-frame-pointer
$(B)/scripts/tool/%.o $(B)/encoder/read/%.o: FRAMES := # which are no part of it
LIBS := $(shell cat symbolize/libs 2>/dev/null)

# A command is shown as one word and its target; `make V=1` shows all of it, `make -s` nothing.
silent := $(findstring s,$(firstword -$(MAKEFLAGS)))
run = $(if $(filter 1,$(V)),,@$(if $(silent),,echo '  $(1)	$@'; ))

base_src := $(wildcard encoder/base/*.c)
core_src := $(base_src) $(wildcard $(addsuffix /*.c,$(addprefix encoder/,format thread cpu drain file file/v1) symbolize symbolize/*))
lib_src := $(wildcard preload/*.c preload/*/*.c) $(core_src)
unit := $(patsubst %.c,$(B)/%,$(wildcard test/unit/*.c) test/fuzz/schedules.c test/fuzz/sums.c test/bench/kills.c)
prog_c := $(patsubst %.c,$(B)/%,$(wildcard test/prog/*.c test/hostile/*.c test/single/*/*.c))
prog_cxx := $(patsubst %.cc,$(B)/%,$(wildcard test/prog/*.cc test/single/*/*.cc))
micro := $(patsubst %,$(B)/test/bench/%,micro micro-cxx micro-cxx-fp)
walk := $(patsubst %,$(B)/test/bench/%,walk walk-cxx walk-cxx-fp)

.PHONY: all tests programs tsan asan debug aarch64 aarch64-dist fuzzers bench bench-smoke man install uninstall deb dist wheel clean format check-format lint help
all: $(SO) $(TOOL) ## build ./libgotrace.so and the command, build/gotrace

$(SO): $(lib_src:%.c=$(B)/%.o) preload/versions
	@mkdir -p $(@D)
	$(call run,LD)$(CC) -shared -Wl,-z,defs -Wl,-z,now -Wl,-soname,$(@F) -Wl,--version-script=preload/versions \
		-Wl,--exclude-libs,ALL -Wl,--sort-section=name $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS) -ldl $(THREADS)

# Looked for once: the compiler's message about a header does not say where it comes from.
HEADERS := elfutils/libdwfl.h libelf.h lzma.h zlib.h libiberty/demangle.h sqlite3.h
$(B)/headers:
	@mkdir -p $(@D)
	@for header in $(HEADERS); do echo "#include <$$header>" | $(CC) $(CPPFLAGS) $(CFLAGS) -E -xc - >/dev/null 2>&1 || \
		{ echo "make: $(CC) does not find <$$header>. Run: scripts/deps build" >&2; exit 1; }; done
	@touch $@

$(B)/%.o: %.c Makefile | $(B)/headers
	@mkdir -p $(@D)
	$(call run,CC)$(CC) $(REQUIRED) $(CPPFLAGS) $(CFLAGS) $(FRAMES) -c -o $@ $<

# Its symbol versions are assembly, which link-time optimization would put elsewhere.
$(B)/preload/hooks/sync_cond.o: FRAMES += -fno-lto

tests: programs asan tsan ## build what tests run: programs, and build/asan and build/tsan
programs: all $(unit) $(micro) $(prog_c) $(prog_cxx) $(B)/test/unwind/check.so ## build the unit tests and traced programs

# Unit tests see everything but the hooks and the thread state: what runs without interposition.
unit_obj := $(core_src:%.c=$(B)/%.o) $(patsubst %.c,$(B)/%.o,$(wildcard encoder/read/*.c)) $(patsubst %,$(B)/preload/%.o,registry/registry registry/park stacks/cfi stacks/code_layouts stacks/unwind)

$(unit): $(B)/%: %.c $(unit_obj)
	@mkdir -p $(@D)
	$(call run,LD)$(CC) $(REQUIRED) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) $(unit_obj) $(LIBS) -ldl -pthread

$(B)/test/fuzz/schedules: test/fuzz/kernel.c # which takes the place of:
$(B)/test/fuzz/schedules: unit_obj := $(filter-out %/perf.o,$(unit_obj))
$(B)/test/unit/spin_loop: $(B)/scripts/tool/why/spin_loop.o
$(B)/test/unit/spin_loop: unit_obj += $(B)/scripts/tool/why/spin_loop.o
$(B)/test/unit/halts: $(B)/preload/process/read_usage.o
$(B)/test/unit/halts: unit_obj += $(B)/preload/process/read_usage.o

# -Wno-tsan: it does not model fences. The ones here stand for membarrier(2), which it does not see either.
tsan: ## build the stress test with ThreadSanitizer, as build/tsan/stress
	$(MAKE) B=build/tsan-obj CFLAGS='-O1 -g -fsanitize=thread -Wno-tsan' build/tsan-obj/test/unit/stress
	@mkdir -p build/tsan && cp build/tsan-obj/test/unit/stress build/tsan/stress

debug: ## build what checks the rules of concurrency (encoder/base/debug.h) as it runs, as build/debug/*
	$(MAKE) B=build/debug SO=build/debug/libgotrace.so CPPFLAGS=-DGT_DEBUG all build/debug/test/unwind/check.so \
		$(unit:$(B)/%=build/debug/%)

aarch64_root := $(B)/aarch64/root/usr
aarch64: goal := programs ## build for aarch64 by a cross compiler, as build/aarch64/*; `scripts/deps all` has what that takes
aarch64-dist: goal := dist ## build for aarch64 what `make dist` builds
aarch64 aarch64-dist:
	$(MAKE) B=build/aarch64 SO=build/aarch64/libgotrace.so CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ LDFLAGS='$(aarch64_root:%=-L%/lib/aarch64-linux-gnu)' \
		CPPFLAGS='$(foreach dir,/include/aarch64-linux-gnu /include,$(aarch64_root:%=-isystem %$(dir)))' $(goal)

asan: ## build what reads files that may be damaged with AddressSanitizer: build/asan/cfi, build/asan/gotrace
	$(MAKE) B=build/asan-obj CFLAGS='-O1 -g -fsanitize=address,undefined -fno-sanitize-recover -fsanitize-sections=.bss.sparse,.data.sparse' \
		build/asan-obj/test/unit/cfi build/asan-obj/gotrace
	@mkdir -p build/asan && cp build/asan-obj/test/unit/cfi build/asan-obj/gotrace build/asan

# The parts that parse what others wrote, each with the sources that it needs.
fuzz_src := $(core_src) preload/stacks/cfi.c preload/shared/options.c
fuzzers := $(patsubst test/fuzz/input/%.c,$(B)/fuzz/%,$(wildcard test/fuzz/input/*.c))
fuzzers: ## build the fuzzers with libFuzzer and AddressSanitizer, as build/fuzz/*
	$(MAKE) B=build/fuzz-obj CC=clang CFLAGS='-O1 -g -fsanitize=fuzzer-no-link,address,undefined' \
		$(fuzzers:$(B)/%=build/fuzz-obj/%)
	@mkdir -p build/fuzz && cp $(fuzzers:$(B)/%=build/fuzz-obj/%) build/fuzz

$(B)/fuzz/%: test/fuzz/input/%.c $(fuzz_src:%.c=$(B)/%.o)
	@mkdir -p $(@D)
	$(call run,LD)$(CC) $(REQUIRED) $(CPPFLAGS) $(CFLAGS) -fsanitize=fuzzer -o $@ $(filter %.c %.o,$^) $(LIBS) -ldl -pthread

unwind_obj := $(patsubst %,$(B)/%.o,$(addprefix preload/stacks/,unwind code_layouts cfi) encoder/thread/stacks \
	$(addprefix encoder/base/,arena box era futex libc urgent))
$(B)/test/unwind/check.so: test/unwind/check.c $(unwind_obj)
	@mkdir -p $(@D)
	$(call run,LD)$(CC) $(REQUIRED) $(CPPFLAGS) $(CFLAGS) $(FRAMES) -shared -Wl,-z,now -o $@ $(filter %.c %.o,$^) -ldl

# The stacks of test/bench/descend.h, and what is measured on each. -O2 omits frame pointers.
$(B)/test/bench/descend.o: test/bench/descend.c
	@mkdir -p $(@D)
	$(call run,CC)$(CC) -std=gnu11 $(WARN) -MMD -MP -O2 -g -c -o $@ $<

cxx_stacks := $(B)/test/bench/descend-cxx.o $(B)/test/bench/descend-cxx-fp.o
$(cxx_stacks): test/bench/descend.cc
	@mkdir -p $(@D)
	$(call run,CXX)$(CXX) -std=c++17 -Wall -Wextra $(if $(WERROR),-Werror) -MMD -MP -O2 -g $(if $(findstring -fp,$@),$(FRAMES)) -c -o $@ $<

$(micro): test/bench/micro.c
	@mkdir -p $(@D)
	$(call run,LD)$(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) -MMD -MP -MT $@ -MF $@.d -O2 -g -pthread -o $@ $(filter %.c %.o,$^) -Wl,--as-needed -lstdc++

$(walk): test/bench/walk.c $(unwind_obj)
	@mkdir -p $(@D)
	$(call run,LD)$(CC) $(REQUIRED) $(CPPFLAGS) $(CFLAGS) $(FRAMES) -o $@ $(filter %.c %.o,$^) -ldl -Wl,--as-needed -lstdc++

$(filter %micro %walk,$(micro) $(walk)): $(B)/test/bench/descend.o
$(filter %-cxx,$(micro) $(walk)): $(B)/test/bench/descend-cxx.o
$(filter %-fp,$(micro) $(walk)): $(B)/test/bench/descend-cxx-fp.o

bench_prog := $(patsubst %,$(B)/test/bench/%,load spawn trivial storm)
$(bench_prog): $(B)/%: %.c
	@mkdir -p $(@D)
	$(call run,LD)$(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) -O2 -g -pthread -o $@ $<

$(B)/test/bench/floor: test/bench/floor.c $(addprefix $(B)/encoder/base/,clock.o futex.o libc.o urgent.o)
	@mkdir -p $(@D)
	$(call run,LD)$(CC) $(REQUIRED) $(CPPFLAGS) $(CFLAGS) -pthread -o $@ $(filter %.c %.o,$^) -ldl

bench_so := $(patsubst %,$(B)/test/bench/%.so,empty records)
$(bench_so): $(B)/%.so: %.c
	@mkdir -p $(@D)
	$(call run,LD)$(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) -O2 -g -fPIC -fvisibility=hidden -shared -pthread -Wl,-z,now -o $@ $<

programs: $(bench_prog) $(walk) $(B)/test/bench/floor $(bench_so)

bench: libgotrace.so programs ## measure what tracing costs, beside other tracers; RECORD=1 writes RESULTS.md
	python3 test/bench/run.py $(if $(RECORD),--record)

bench-smoke: all programs ## run each benchmark once and briefly, to see that it runs
	python3 test/bench/run.py --smoke
	python3 test/bench/why.py --smoke

$(B)/test/prog/made: PROG_FLAGS := -rdynamic # debuggers and we find what it defines

$(filter %/calls %/calls_fortify %/calls_lfs %/pointers,$(prog_c)): PROG_LIBS := -lresolv -lanl # libraries of their own before glibc 2.34

$(prog_c): $(B)/%: %.c
	@mkdir -p $(@D)
	$(call run,LD)$(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) -MMD -MP -MT $@ -MF $@.d -O1 -g -pthread $(PROG_FLAGS) -o $@ $< $(PROG_LIBS) -ldl -lrt

$(prog_cxx): $(B)/%: %.cc
	@mkdir -p $(@D)
	$(call run,LD)$(CXX) -std=c++17 -Wall -Wextra $(if $(WERROR),-Werror) -O1 -g -pthread -o $@ $< -ldl

define GOTRACE_PC
prefix=$(PREFIX)
includedir=$${prefix}/include

Name: gotrace
Description: Annotations for execution traces written by libgotrace.so, which need not be linked
Version: $(VERSION)
Cflags: -I$${includedir}
endef
export GOTRACE_PC

# The command. It shares the tables of the library and the writers of the formats, and none of what
# runs inside a program.
tool_obj := $(patsubst %.c,$(B)/%.o,$(wildcard scripts/tool/*.c scripts/tool/*/*.c encoder/read/*.c) $(core_src) preload/shared/options.c preload/shared/census.c preload/shared/leaves.c)
$(B)/encoder/base/version.o: override CPPFLAGS += -DGT_VERSION='"$(VERSION)"'
$(B)/encoder/base/version.o: scripts/CHANGELOG.md
$(B)/scripts/tool/export/flame.o: scripts/tool/export/flame.js
$(B)/scripts/tool/html/report_command.o: $(wildcard scripts/tool/html/report.*)

# Variables that close themselves at a block's end need nothing of libgcc_s, as nothing unwinds the command.
$(B)/scripts/tool/%.o: REQUIRED += -fno-exceptions

$(TOOL): $(tool_obj)
	@mkdir -p $(@D)
	$(call run,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) -ldl -pthread

# Manual pages: scripts/man/NAME.SECTION.md, turned into roff by go-md2man, which nothing else needs. Links to files of the
# checkout become their text. go-md2man 2.0 asks for a font that man has not, and puts an empty paragraph below headings. In
# its tables a cell of more than 30 characters can break a row: longer texts are lists.
man_pages := $(patsubst scripts/man/%.md,$(B)/man/%,$(wildcard scripts/man/*.md))
man_links := $(patsubst %,$(B)/man/gotrace-%.1,detach stop snapshot) # commands that another one's page is about
man: $(man_pages) $(man_links) ## build the manual pages, as build/man/*; takes go-md2man, which `scripts/deps build` installs
$(man_pages): $(B)/man/%: scripts/man/%.md Makefile
	@mkdir -p $(@D)
	@command -v go-md2man >/dev/null || { echo 'make man: go-md2man is needed. Run: scripts/deps build' >&2; exit 1; }
	$(call run,MAN)sed -E '/^!\[/d; s/\[([^]]*)\]\((\.\.\/|gotrace|libgotrace)[^)]*\)/\1/g' $< >$@.md
	@go-md2man -in $@.md -out $@.roff
	@sed -E ':a;/^\.S[HS]/{n;/^\.PP$$/d;ba}; s/\\fC//g' $@.roff >$@
	@rm $@.md $@.roff
$(B)/man/gotrace-detach.1: page := attach
$(B)/man/gotrace-stop.1 $(B)/man/gotrace-snapshot.1: page := start
$(man_links): Makefile
	@mkdir -p $(@D)
	@echo .so man1/gotrace-$(page).1 >$@

install: all $(if $(shell command -v go-md2man),man) ## install below $(DESTDIR)$(PREFIX)
	install -D -m 755 $(TOOL) $(DESTDIR)$(PREFIX)/bin/gotrace
	install -D -m 644 $(SO) $(DESTDIR)$(LIBDIR)/libgotrace.so
	install -D -m 644 preload/gotrace.h $(DESTDIR)$(PREFIX)/include/gotrace.h
	install -d $(DESTDIR)$(PREFIX)/share/pkgconfig
	printf '%s\n' "$$GOTRACE_PC" > $(DESTDIR)$(PREFIX)/share/pkgconfig/gotrace.pc
	for page in $(man_pages) $(man_links); do [ ! -e $$page ] || \
		install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man$${page##*.} $$page || exit; done
	install -D -m 644 scripts/completion/gotrace.bash \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/gotrace
	install -D -m 644 scripts/completion/_gotrace $(DESTDIR)$(ZSHDIR)/_gotrace

installed := $(LIBDIR)/libgotrace.so $(ZSHDIR)/_gotrace $(addprefix $(PREFIX)/,bin/gotrace \
	include/gotrace.h share/pkgconfig/gotrace.pc \
	share/bash-completion/completions/gotrace $(foreach page,$(notdir $(man_pages) $(man_links)),share/man/man$(subst .,,$(suffix $(page)))/$(page)))
uninstall: ## remove what install put there
	rm -f $(addprefix $(DESTDIR),$(installed))
	for folder in $(patsubst %,man/man%,1 3 5 7) pkgconfig bash-completion/completions bash-completion zsh/site-functions zsh; do \
		rmdir $(DESTDIR)$(PREFIX)/share/$$folder 2>/dev/null; done; true

dist: all man ## build what runs from glibc 2.31 on, whatever this system has, as build/gotrace-*.tar.xz
	+scripts/dist $(VERSION)

wheel: dist ## build what `pip install` takes, as build/gotrace-*.whl, from what `make dist` makes
	scripts/wheel $(VERSION)

deb: all man ## build a Debian package, as build/gotrace_*.deb
	scripts/deb $(VERSION)

sources := $(wildcard $(addsuffix .[ch],preload/* preload/*/* encoder/* encoder/*/* encoder/*/*/* symbolize/* symbolize/*/* scripts/*/* scripts/tool/*/* \
	test/*/* test/fuzz/input/* test/single/*/* test/source/*/*) test/*/*.cc test/single/*/*.cc test/source/*/*.cc)
CLANG_FORMAT := $(firstword $(wildcard build/clang-format/clang_format/data/bin/clang-format) clang-format)
format: ## reformat all sources
	$(call run,FORMAT)$(CLANG_FORMAT) -i $(sources)

check-format: ## fail when a source is not formatted
	$(call run,CHECK)$(CLANG_FORMAT) --dry-run -Werror $(sources)

lint: ## fail where ruff finds fault with Python, or shellcheck with shell scripts; `scripts/deps all` installs both
	$(call run,RUFF)$(firstword $(wildcard build/ruff/bin/ruff) ruff) check --quiet scripts scripts/wheel test
	$(call run,SHELLCHECK)shellcheck $$(grep -lIsE '^#!.*/(env bash|sh)$$|^# shellcheck shell=' .ci/run scripts/* scripts/*/* test/*/*)

clean: ## remove everything built
	rm -rf $(B) libgotrace.so

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST)

-include $(shell find $(B) \( -path $(B)/sources -o -path $(B)/failures \) -prune -o -name '*.d' -type f -print 2>/dev/null)
