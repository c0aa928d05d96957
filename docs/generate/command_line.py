"""docs/reference/command-line.md, from the tables of commands and options."""
import re

from lists import calls, source

HEAD = """\
# The command line

<!-- Made by docs/generate from src/cli/commands.def, src/cli/options.def and docs/generate/command_line.py: edit those, then `make pages`. -->

    fusec FILE.fuse [AXIS=SIZE ...] [options]    print the CUDA C
    fusec COMMAND [arguments] [options]

`fusec --help` lists the commands, `fusec COMMAND --help` the options of one; `man fusec` says more about each.

- FILE is a `.fuse` file, or `-` for standard input. Where a FILE's name begins with a dash, it comes behind `--`.
- `AXIS=SIZE` gives an axis a size, as in `N=4096`, in place of the file's default. It has no spaces.
- A value follows its option: `--emit ptx` or `--emit=ptx`.
- Results go to standard output, errors and warnings to standard error.
- A file that `-o` or `--out` names is written under a temporary name and then renamed.

## Commands

{commands}
Below, each command has its options. These are for all commands:

{general}
"""

TAIL = """\
## Exit statuses

| status | meaning |
| --- | --- |
| 0 | Done. |
| 1 | The program or its data is wrong: syntax, types, a missing import, tensors that do not fit. `fmt --check`: a file is not formatted. |
| 2 | Usage: an unknown option, a missing argument or size, an unreadable FILE, a refused schedule. |
| 3 | The machine could not: no driver, NVRTC or memory, a limit reached, an unwritable file. |
| 4 | `--verify` or `gradcheck` found a wrong number. |

`fusec check` with several files exits with the largest of their statuses. Warnings do not change the status.

## Environment

| variable | meaning |
| --- | --- |
| `FUSEC_CACHE_DIR` | the disk cache, an absolute path; else `$XDG_CACHE_HOME/fusec`, else `~/.cache/fusec` |
| `FUSEC_CACHE_BYTES` | its largest size in bytes: 268435456 by default |
| `FUSEC_TUNING_FILE` | the tuning file, an absolute path; else `$XDG_CONFIG_HOME/fusec/tuning`, else `~/.config/fusec/tuning`; `/dev/null`: none |
| `FUSEC_NVRTC` | the libnvrtc to use, instead of searching for one |
| `FUSEC_TARGETS` | a directory, an absolute path, with further descriptions of GPUs and tables of measured schedules ([tuning](../howto/tuning.md)) |
| `CXX` | the C++ compiler of the simulator; else `g++`, else `clang++` |
| `FUSEC_SIM_KEEP` | a directory where the simulator leaves the text that it compiled |
| `NO_COLOR` | if set and not empty, no color, unless `--color=always` is given |

## Completions

`make install` installs completions for bash and zsh. To get them in one shell:

    source <(fusec completions bash)
    source <(fusec completions zsh)      # after compinit

They complete commands, options, the values of `--emit`, `--arch`, `--device`, `--schedule`, `--prelude`, `--save` and `--color`, and files.
"""

# The sets of commands in options.def.
SETS = {"COMPILING": {"EXPLAIN", "RUN", "BENCH"}, "GRADIENTS": {"GRAD", "GRADCHECK"}}


def text(field):
    return field.replace('\\"', '"')


def commands_of(field, every):
    found = set(re.findall(r"IN\((\w+)\)", field))
    for name, members in SETS.items():
        if name in field:
            found |= members
    return every if field == "EVERY" else found


def help_of(option, command):
    """As option_help in src/cli/option_words.c."""
    if option[0] == "DEVICE" and command == "TUNE":
        return quoted("cuda, the default: tune measures on a GPU")
    if option[0] == "SEED" and command not in ("RUN", None):
        return quoted("of the random inputs")
    return option[4]


def quoted(words):
    assert f'"{words}"' in source("src/cli/option_words.c"), words
    return words


def cell(words):
    return words.replace("|", "\\|")


def option_row(flag, value, help):
    return f"| `{cell(flag + (' ' + value if value else ''))}` | {cell(text(help))} |\n"


def check_sets():
    """The sets here are those of the sources."""
    for name, members in SETS.items():
        line = re.search(rf"#define {name} \((.*)\)", source("src/cli/options_internal.h")).group(1)
        assert set(re.findall(r"IN\((\w+)\)", line)) == members, name


def page():
    check_sets()
    commands = [[text(field) for field in call] for call in calls("src/cli/commands.def", "COMMAND")]
    options = list(calls("src/cli/options.def", "OPTION"))
    every = {name for name, *_ in commands}
    table = "| command | what it does |\n| --- | --- |\n"
    head = "| option | meaning |\n| --- | --- |\n"
    general = head + "".join(option_row(*o[1:3], o[4]) for o in options if o[3] == "EVERY")
    sections, group = "", None
    for name, word, new, arguments, help in commands:
        table += f"| [`{word}`](#{word}) | {cell(help)} |\n"
        if new != group:
            sections += f"## {new}\n\n"
            group = new
        sections += f"### {word}\n\n    fusec {word} {arguments}\n\n{help[0].upper()}{help[1:]}.\n\n"
        rows = [option_row(*o[1:3], help_of(o, name)) for o in options if o[3] != "EVERY" and name in commands_of(o[3], every)]
        sections += head + "".join(rows) + "\n" if rows else ""
        if word in NOTES:
            sections += NOTES[word] + "\n"
    return HEAD.format(commands=table, general=general) + sections + TAIL


NOTES = {
    "check": "With several graphs and no `--graph`, `check` and `emit` take all; other commands ask for `--graph`. `--json` is described in [JSON](json.md#check).\n",
    "explain": "`--json` is described in [JSON](json.md#explain).\n",
    "run": "Without `--in`, inputs are random: standard normal, and positive where the input is named `rstd`, `rs`, `std`, `var` or `scale`. "
           "On the device `cpu` no kernel runs. `--json` is described in [JSON](json.md#run).\n",
    "bench": "`--json` is described in [JSON](json.md#bench).\n",
    "tune": "[Tuning](../howto/tuning.md) says how schedules are chosen. `--json` is described in [JSON](json.md#tune).\n",
    "build": "[Vendoring](../howto/vendoring.md) says how another program uses the files. NAME.json is described in [JSON](json.md#build).\n",
    "plan": """\
`plan save FILE [AXIS=SIZE ...] -o X.plan`: Save the kernels of a graph as one file, for the GPU here or that of `--arch`. Needs NVRTC and no GPU.

`plan show X.plan`: Print its axes, tensors, kernels and workspace, with `--json` as [JSON](json.md#plan-show). Needs neither GPU nor NVRTC.

`plan run X.plan [AXIS=SIZE ...]`: Run it on the GPU, without NVRTC. Takes `--in`, `--out`, `--set` and `--seed`; rows may have any size.
""",
    "cache": "`--json` is described in [JSON](json.md#cache-list).\n",
}
