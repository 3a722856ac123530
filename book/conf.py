"""Sphinx's settings for the book. `book/build.py` makes the pages and calls Sphinx."""

project = "Attention, from a weighted average to a translator"
html_title = "Attention"
language = "en"
extensions = ["myst_nb", "sphinxcontrib.katex"]
smartquotes = False
nitpicky = True

# Pages show what the solutions' notebooks hold. Nothing is executed here.
nb_execution_mode = "off"
nb_merge_streams = True  # lines printed one after the other stay in one box
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# Maths without a network: the extension brings KaTeX's script; _static/katex holds its style sheet and fonts.
katex_css_path = "katex/katex.min.css"

html_theme = "sphinx_book_theme"
html_theme_options = {
    "home_page_in_toc": True,
    "use_download_button": False,
    "use_fullscreen_button": False,
    "show_toc_level": 2,
    "navbar_persistent": [],
    "footer_content_items": [],
}
html_context = {"default_mode": "auto"}  # light or dark as the reader's system is
html_static_path = ["_static"]
html_css_files = ["book.css", "live.css"]
html_js_files = ["book.js", "live.js"]
html_copy_source = False  # a copy of the source would show every solution
html_show_copyright = False
html_use_index = False
html_show_search_summary = False  # Sphinx would fetch every page that it quotes; book.js quotes without
