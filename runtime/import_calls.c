/* import_calls.c: adapts the import functions of fusec.h to what compile() calls. */
#include "import_file.h"

#include <string.h>

static void release(void *data)
{
    ImportCalls *calls = data;
    if (calls->answered && calls->options.release)
        calls->options.release(calls->options.data, &calls->answer);
    calls->answered = false;
}

static ImportStatus status_of(fusec_status status)
{
    switch (status) {
    case FUSEC_OK: return IMPORT_LOADED;
    case FUSEC_OUT_OF_MEMORY: return IMPORT_NO_MEMORY;
    case FUSEC_IO_ERROR: return IMPORT_MACHINE;
    default: return IMPORT_WRONG;
    }
}

static ImportStatus load(void *data, const Module *importer, const char *path, Imported *imported)
{
    ImportCalls *calls = data;
    fusec_imported *answer = &calls->answer;
    *answer = (fusec_imported){.struct_size = sizeof *answer};
    fusec_status status =
        calls->options.import(calls->options.data, importer->source->name, path, answer);
    answer->message[sizeof answer->message - 1] = 0;
    calls->answered = status == FUSEC_OK;
    for (char *c = answer->message; *c; c++)
        if ((unsigned char)*c < ' ') *c = ' ';
    imported->problem = *answer->message                  ? answer->message
                        : status == FUSEC_INVALID_PROGRAM ? "there is no such file"
                                                          : fusec_status_text(status);
    if (status != FUSEC_OK) return status_of(status);
    if (!answer->text && answer->length) {
        imported->problem = "the import function gave a length and no text";
        return IMPORT_WRONG;
    }
    imported->text = answer->text ? answer->text : "";
    imported->length = answer->length;
    imported->name = answer->name ? answer->name : path;
    imported->identity = answer->identity;
    return IMPORT_LOADED;
}

void import_calls_open(ImportCalls *calls, const fusec_parse_options *options, const char *identity)
{
    *calls = (ImportCalls){.options = *options};
    calls->imports = (Imports){options->import ? load : NULL, release, calls, identity};
}

void import_calls_close(ImportCalls *calls)
{
    release(calls);
}
