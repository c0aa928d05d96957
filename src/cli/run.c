/* run.c: `fusec run`: inputs from a file or at random, one launch, the outputs to a file or a
 * table, and compared with the reference. */
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/session.h"
#include "cli/tensors.h"

/* Runs an open session up to the finished outputs in b. */
static int run_once(Session *s, Batch *b)
{
    int status = fill_batch(s, b);
    if (status == EXIT_DONE) status = open_device(s, s->options->device);
    if (status == EXIT_DONE) status = open_plan(s, false);
    if (status == EXIT_DONE) status = upload_batch(s, b);
    if (status == EXIT_DONE) status = launch_batch(s, b);
    if (status == EXIT_DONE) status = download_batch(s, b);
    return status;
}

/* The outputs as JSON, and with --verify what the reference says of each. */
static int report_json(const Session *s, const Batch *b, Text *out, bool *passed)
{
    const Options *o = s->options;
    Truth truth = {0};
    const int status = o->verify ? open_truth(s, b, &truth) : EXIT_DONE;
    text_print(out, "{\"graph\": \"%s\", \"device\": \"%s\", \"sizes\": {", s->graph->name,
               s->is_simulated ? "sim"
               : s->is_cpu     ? "cpu"
                               : "cuda");
    for (int i = 0; i < s->graph->axis_count; i++)
        text_print(out, "%s\"%s\": %lld", i ? ", " : "", s->graph->axes[i].name,
                   (long long)s->sizes.of[i]);
    text_print(out, "},\n \"outputs\": [");
    const char *comma = "";
    for (int i = 0; i < s->graph->outputs.count && status == EXIT_DONE; i++) {
        if (!s->wanted[i]) continue;
        text_print(out, "%s\n  ", comma);
        comma = ",";
        put_output(s, b, i, out);
        text_print(out, ", \"verified\": ");
        const Verdict v = o->verify ? judge_output(s, b, &truth, i) : (Verdict){0};
        if (o->verify)
            put_verdict(out, &v);
        else
            text_print(out, "null");
        text_print(out, "}");
        *passed &= !v.wrong;
    }
    text_print(out, "],\n \"ok\": %s}\n", !o->verify ? "null" : *passed ? "true" : "false");
    close_truth(s, &truth);
    return status;
}

/* The outputs and what the reference says of them, as tables. */
static int report_tables(const Session *s, const Batch *b, Text *out, bool *passed)
{
    if (!s->options->out) summarize_outputs(s, b, out);
    return s->options->verify ? verify_batch(s, b, out, passed) : EXIT_DONE;
}

int command_run(Options *o)
{
    Session s;
    Batch b = {0};
    Text *out = text_new(o->arena);
    bool passed = true;
    int status = open_session(&s, o);
    if (status == EXIT_DONE && !can_write_result(o->arena, o->out)) status = EXIT_MACHINE;
    if (status == EXIT_DONE) status = run_once(&s, &b);
    if (status == EXIT_DONE && o->out) status = save_outputs(&s, &b, o->out);
    if (status == EXIT_DONE)
        status = o->json ? report_json(&s, &b, out, &passed) : report_tables(&s, &b, out, &passed);
    close_batch(&s, &b);
    close_session(&s);
    if (status == EXIT_DONE) status = save_result(o->arena, NULL, text_string(out), out->length);
    return status == EXIT_DONE && !passed ? EXIT_VERIFY : status;
}
