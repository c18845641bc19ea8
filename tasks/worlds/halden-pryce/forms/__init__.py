# SPDX-License-Identifier: Apache-2.0
"""How each kind of file is written, whatever stands in it; every form writes the same bytes twice.

archive   an office file without the clock of the day it was saved
workbook  sheets with formulas and, beside each, its value
deck      slides with charts, tables, groups and notes
mbox      mails, with HTML bodies and attachments
takeout   chat spaces and people
ics       a calendar
"""
