/* suites.h: the Check suites, one line each; run_suites.c runs all that are declared here. */
#ifndef FUSEC_TESTS_SUITES_H
#define FUSEC_TESTS_SUITES_H

#include <check.h>

/* Suites run two at a time, in this order: those that take long come first. */
Suite *keys_of_cases_suite(void);
Suite *keys_of_examples_suite(void);
Suite *sim_suite(void);
Suite *alternatives_suite(void);
Suite *choice_suite(void);
Suite *prop_suite(void);
Suite *grad_suite(void);
Suite *mutants_suite(void);
Suite *failing_suite(void);
Suite *keys_suite(void);
Suite *options_suite(void);
Suite *graph_suite(void);
Suite *parse_suite(void);
Suite *format_suite(void);
Suite *lower_suite(void);
Suite *lower_errors_suite(void);
Suite *runtime_suite(void);
Suite *program_suite(void);
Suite *launch_suite(void);
Suite *arguments_suite(void);
Suite *nulls_suite(void);
Suite *process_suite(void);
Suite *places_suite(void);
Suite *plan_file_suite(void);
Suite *binary_suite(void);
Suite *trust_suite(void);
Suite *refused_suite(void);
Suite *import_suite(void);
Suite *dtype_suite(void);
Suite *safetensors_suite(void);
Suite *reference_suite(void);
Suite *judge_suite(void);
Suite *broken_suite(void);
Suite *tuning_suite(void);
Suite *fit_suite(void);
Suite *table_suite(void);
Suite *tune_suite(void);
Suite *limits_suite(void);
Suite *target_suite(void);

#endif
