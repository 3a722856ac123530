"""One module a chapter: the tests that decide the points. Students never see this folder."""
