/* cases.h: the commands, and the calls of the interface, that `make faults` runs; files are those
 * of faults.c. */
#ifndef FAULTS_CASES_H
#define FAULTS_CASES_H

#include "run.h"

static const Case cases[] = {
    {"check", "check norm.fuse uses.fuse", 0},
    {"emit", "emit norm.fuse N=64", 0},
    {"emit-file", "emit norm.fuse N=64 -o old.txt", 0},
    {"emit-new", "emit norm.fuse N=64 -o new.txt", 0},
    {"emit-import", "emit uses.fuse --emit=graph", 0},
    {"emit-tokens", "emit norm.fuse --emit=tokens", 0},
    {"emit-ptx", "emit zero.fuse --emit=ptx", FRESH},
    {"emit-cubin", "emit zero.fuse --emit=cubin -o old.txt", 0},
    {"emit-model", "emit held.fuse N=1000 --arch sm_90a", 0},
    {"emit-gpu", "emit zero.fuse", GPU},
    {"explain", "explain norm.fuse N=64", 0},
    {"explain-json", "explain norm.fuse N=64 --json -o old.txt", FRESH},
    {"explain-spills", "explain norm.fuse N=4096 --candidates", SPILLS | FRESH},
    {"fmt", "fmt ugly.fuse", 0},
    {"fmt-w", "fmt -w ugly.fuse norm.fuse", 0},
    {"fmt-check", "fmt --check norm.fuse", 0},
    {"run", "run norm.fuse M=8 N=16 --device cpu --verify", 0},
    {"run-threads", "run norm.fuse M=2048 N=96 --device cpu", 0},
    {"run-out", "run norm.fuse --device cpu --in in.safetensors --out old.safetensors", CLOSELY},
    {"run-new", "run norm.fuse --device cpu --in in.safetensors --out new.safetensors --verify", 0},
    {"run-stdin", "run norm.fuse --device cpu --in - --out -", STDIN},
    {"run-limit",
     "run norm.fuse M=8 N=16 --device cpu --verify --limit seconds=100,bytes=1000000000", 0},
    {"run-strides", "run norm.fuse M=8 N=16 --device cpu --stride x=32,1 --offset y=3", 0},
    {"run-gpu", "run zero.fuse --device cuda --verify", GPU},
    {"run-gpu-fresh", "run zero.fuse --device cuda --out old.safetensors", GPU | FRESH},
    {"run-gpu-spills", "run zero.fuse N=4096 --device cuda", GPU | FRESH | SPILLS},
    {"run-sim", "run norm.fuse M=2 N=8 --device sim --verify", 0},
    {"bench", "bench zero.fuse --json", GPU | NUMBERS},
    {"bench-file", "bench zero.fuse -o old.txt", GPU | NUMBERS},
    {"tune", "tune zero.fuse --json -o new.txt", GPU | NUMBERS | TRIES},
    {"tune-fit", "tune --fit -o old.txt", GPU | NUMBERS},
    {"grad", "grad norm.fuse -o old.txt", 0},
    {"gradcheck", "gradcheck norm.fuse --in in.safetensors", 0},
    {"cache-list", "cache list", NUMBERS},
    {"cache-clear", "cache clear", CLEARS},
    {"cache-path", "cache path", 0},
    {"help", "--help", 0},
    {"api-cpu", "cpu", CALLS},
    {"api-gpu", "gpu", CALLS | GPU},
    {"api-gpu-fresh", "gpu", CALLS | GPU | FRESH},
    {"api-spills", "gpu", CALLS | GPU | FRESH | SPILLS},
    {"api-saved", "saved", CALLS | GPU},
    {"api-files", "files", CALLS},
    {"api-grad", "grad", CALLS},
    {"api-cache", "cache", CALLS},
};
enum { CASES = sizeof cases / sizeof *cases };

#endif
