/* help.c: `fusec --help` and `fusec COMMAND --help`, in 79 columns. */
#include "cli/options_internal.h"

#include <stdio.h>
#include <string.h>

/* Prints words up to the column WIDTH, and indents the lines after the first. */
static void print_wrapped(const char *text, int column, int indent)
{
    enum { WIDTH = 79 };
    while (*text) {
        const int length = (int)strcspn(text, " ");
        if (column + length > WIDTH && column > indent) {
            printf("\n%*s", indent, "");
            column = indent;
        }
        printf("%.*s", length, text);
        column += length + 1;
        text += length + (text[length] == ' ');
        if (*text && column + (int)strcspn(text, " ") <= WIDTH) putchar(' ');
    }
    putchar('\n');
}

/* `head` in a column of its own, beside what it means. */
static void print_entry(const char *head, int indent, const char *help)
{
    const bool fits = (int)strlen(head) + 4 <= indent;
    if (fits)
        printf("  %-*s", indent - 2, head);
    else
        printf("  %s\n%*s", head, indent, "");
    print_wrapped(help, indent, indent);
}

static void print_flags(unsigned commands)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (!(flag_info[i].commands & commands)) continue;
        char head[64];
        snprintf(head, sizeof head, "%s%s%s", flag_words[i], flag_info[i].value[0] ? " " : "",
                 flag_info[i].value);
        print_entry(head, 24, option_help((Option)i, commands));
    }
}

void print_help(void)
{
    puts("fusec compiles normalization graphs (.fuse files) to readable CUDA C.\n\n"
         "usage: fusec FILE.fuse [AXIS=SIZE ...] [options]    print the CUDA C\n"
         "       fusec COMMAND [arguments] [options]");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (i == 0 || strcmp(command_info[i].group, command_info[i - 1].group))
            printf("\n%s\n", command_info[i].group);
        print_entry(command_words[i], 15, command_info[i].help);
    }
    puts("\nOptions of all commands");
    print_flags(1u << COMMAND_COUNT);
    puts("\n`fusec COMMAND --help` lists the arguments and options of a command, and\n"
         "`man fusec` describes them. FILE may be `-`, which is standard input.\n\n"
         "Exit status\n"
         "  0  done\n"
         "  1  the program or its data is wrong\n"
         "  2  usage: an unknown option, a missing argument, a refused schedule\n"
         "  3  the machine could not: no driver, NVRTC or memory, a limit, unwritable file\n"
         "  4  --verify or gradcheck found a wrong number");
}

void print_command_help(Command command)
{
    printf("usage: fusec %s %s [options]\n\n", command_words[command],
           command_info[command].arguments);
    print_wrapped(command_info[command].help, 0, 0);
    puts("\noptions:");
    print_flags(1u << command);
}
