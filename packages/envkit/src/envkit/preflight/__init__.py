# SPDX-License-Identifier: Apache-2.0
"""Run a task directory at training concurrency before training on it, in the order of the flow.

types        every carrier: specs, events, the plan, the pieces of the report
text, stats  lines that are safe to print; quantiles, intervals, bounds
names, plan  task directories to trials, deterministic, after their static checks
kernel_files, host, fit   what this machine has left; the highest concurrency it holds, and why
waves        when the first wave of trials goes on
attempt      one attempt of one trial in a process of its own
under_way    specs on their way to a record, and what their tasks share
temporary, gauges       what must not be left; what a run takes while it runs
launcher     trials through the fork server: retries by policy, records
run          fit, run, gate, report: one screen
course, course_json        gauges and phases over time, bounded
tally        what was said, as one record a planned trial
gate         PASS or FAIL, and why
tables       faults by class, seconds by phase, CPU by part
by_task, operations        one row a task; each tool, and what took longest
logs, failed the trials to look at, and how to see each again
quarantine   the tasks that must not be trained on, as trainers read them
report       all of it as one judged Report
levels, knee, ramp, same_rewards   one concurrency after the other; where more gives no more
slots, outcomes            what a trial took; one row a trial, for later runs
significance, changes, baseline   this run against an earlier one, told from chance
estimate, measures         what a training run would take; what is made of a run beside its report
board, progress         where every trial stands; live rows on a terminal, plain lines elsewhere
report_text, report_json, report_html   the report for a person, a program, a browser
consoles     where it is printed
ramp_views, change_views, columns       ramps and comparisons, wherever they are shown
junit, markdown, outputs                the report for build systems and pull requests
report_read             a report file read back
markup, plots, curves   elements that cannot be injected into; inline SVG
page_problems, page_figures, page_parts   the sections of the page
place, options, begin   where files go; the command line; from it to a run that can begin
command                 all of it: begun, run, reported
"""
