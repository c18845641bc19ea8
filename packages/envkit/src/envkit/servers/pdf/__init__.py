# SPDX-License-Identifier: Apache-2.0
"""The `pdf_server`: pages as text with their layout, in the order the text is made.

library     the C library: documents, fields, pictures of pages
glyphs      its characters, with size, direction and visibility
ruling      its straight lines, backgrounds and pictures
ink         what is visibly printed on a page, in one upright frame
words       characters to words and lines
tables      ruling lines and words to tables
columns     words to blocks in reading order
render      blocks to text on a character grid
page        one page from all of these, and what kind of page it is
shelf       documents of a world, laid out before any trial
shelving    the program that lays them out
document    a file opened, its identity, its pages remembered
searching   matches across lines, cells and hyphens
reading     read_pdf_pages
search      search_pdf
looking     read_page_as_image, get_pdf_info
tools       all of them, as the catalog lists them
"""
