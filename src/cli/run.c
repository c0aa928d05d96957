/* run.c: `fusec run`: inputs from a file or at random, one launch, the outputs to a file or a
 * table, and compared with the reference. */
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/session.h"
#include "cli/tensors.h"

/* Runs an open session up to the finished outputs in b. */
static int run_once(Session *s, Batch *b)
{
    const Options *o = s->options;
    InputFile file = {0};
    int status = o->in ? open_inputs(s, o->in, &file) : EXIT_DONE;
    if (status == EXIT_DONE) status = settle_sizes(s, o->in ? &file.sizes : NULL);
    if (status == EXIT_DONE) status = open_batch(s, &s->sizes, b);
    if (status == EXIT_DONE) {
        if (o->in)
            fill_from_inputs(s, &file, b);
        else
            fill_random(s, b);
        status = settle_scalars(s, b, o->in ? file.given : NULL, !o->in);
    }
    close_inputs(&file);
    if (status == EXIT_DONE) status = open_device(s, o->device);
    if (status == EXIT_DONE) status = open_plan(s, false);
    if (status == EXIT_DONE) status = upload_batch(s, b);
    if (status == EXIT_DONE) status = launch_batch(s, b);
    if (status == EXIT_DONE) status = download_batch(s, b);
    return status;
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
    if (status == EXIT_DONE && !o->out) summarize_outputs(&s, &b, out);
    if (status == EXIT_DONE && o->verify) status = verify_batch(&s, &b, out, &passed);
    close_batch(&s, &b);
    close_session(&s);
    if (status == EXIT_DONE) status = save_result(o->arena, NULL, text_string(out), out->length);
    return status == EXIT_DONE && !passed ? EXIT_VERIFY : status;
}
