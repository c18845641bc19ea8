# SPDX-License-Identifier: Apache-2.0
"""The `pdf_server`: pages as text with their layout, in the order the text is made.

pdfium      the only module that touches the C library: characters, lines, fields, pictures
words       characters to words and lines
tables      ruling lines and words to tables
columns     words to blocks in reading order
render      blocks to text on a character grid
page        one page from all of these, and what kind of page it is
document    a file opened, its identity, its pages remembered
searching   matches across lines, cells and hyphens
tools       read_pdf_pages, search_pdf, read_page_as_image, get_pdf_info
"""
