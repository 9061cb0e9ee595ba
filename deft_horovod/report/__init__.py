"""A report as one page of HTML that needs nothing else: no network, no scripts. Pure.

`findings` is what the page says, `page` puts it together, and each of its sections is a module.
"""
