# SPDX-License-Identifier: Apache-2.0
"""Run a task directory at training concurrency before training on it, in the order of the flow.

types        every carrier: specs, events, the plan, the pieces of the report
plan         task directories to trials, deterministic
fit          the highest concurrency this machine holds, and what binds it
run          checks, fit, run, gate, report: one screen
progress     live rows on a terminal, plain lines elsewhere
stats        percentiles, intervals, bounds
gate         PASS or FAIL, and why
report       records and gauges to one Report
report_text  the report for a terminal
report_html  the report as one offline page
"""
