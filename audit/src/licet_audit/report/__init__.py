"""The report: one offline HTML file for the people who must sign for a log.

Rules this package keeps:

- questions (`population`), what one run says (`run` and its parts), drawing (`charts`) and the page
  (`document`, `templates/`) stand apart, so that another face can share all but the last;
- nothing of a record becomes markup, an attribute, a style or a link: text is made harmless (`safe`), and
  then escaped;
- a page says what it shows of how much, and what was checked before it was written.
"""
