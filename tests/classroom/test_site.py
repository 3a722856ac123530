"""The server's pages: whose they are, what they hold, what a form can do, how they are read."""

import contextlib
import io
import os
import re
import shutil
import socket
import threading
import time
import zipfile
from types import SimpleNamespace

import nbformat
import pytest

pytest.importorskip("starlette", reason="the server's packages are not installed: pip install 'autograder[service]'")
import uvicorn
from serving import HALF, RIGHT, run, set_up
from starlette.testclient import TestClient

from autograder.service import app, connections, people, site

SAME = {"Sec-Fetch-Site": "same-origin"}
HOSTILE = "</pre><script>document.title='acted'</script><img src=x onerror=alert(1)>"


@pytest.fixture
def teacher(room, tmp_path) -> str:
    """An instructor's token."""
    assert run("tokens", tmp_path / "teachers.csv", "--instructor", "ines").exit_code == 0
    return (tmp_path / "teachers.csv").read_text().splitlines()[1].split(",")[2]


def sign_in(room, token: str) -> TestClient:
    """A browser that is signed in."""
    browser = TestClient(room.client.app, raise_server_exceptions=False, base_url="https://testserver")
    done = browser.post("/sign-in", data={"token": token}, headers=SAME, follow_redirects=False)
    assert done.status_code == 303, done.text
    return browser


def proof(page: str) -> str:
    return re.search(r'name="proof" value="(\w+)"', page)[1]


def test_a_browser_is_signed_in_by_a_cookie_that_nobody_else_can_read(room):
    asked = room.client.get("/", follow_redirects=False)
    assert asked.status_code == 303 and asked.headers["location"] == "/sign-in"
    browser = TestClient(room.client.app, base_url="https://testserver")
    done = browser.post("/sign-in", data={"token": room.tokens["ada"]}, headers=SAME, follow_redirects=False)
    cookie = done.headers["set-cookie"]
    assert cookie.startswith("__Host-autograder-session=") and room.tokens["ada"] not in cookie
    assert {"HttpOnly", "Secure", "SameSite=lax", "Path=/"} <= set(cookie.split("; "))
    assert "max-age=31536000" in done.headers["Strict-Transport-Security"]
    page = browser.get("/")
    assert "Your hand-ins" in page.text and "ada" in page.text and room.tokens["ada"] not in page.text
    assert "autograder hand-in 01 --server ADDRESS" in page.text, "without it nothing is sent"
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "script-src 'sha256-" in policy
    room.reload(prefix="/services/monday/")  # a path that is not all of the server's
    within = TestClient(room.client.app, base_url="https://testserver/services/monday/")
    done = within.post("sign-in", data={"token": room.tokens["ada"]}, headers=SAME, follow_redirects=False)
    assert done.headers["set-cookie"].startswith("__Secure-autograder-session=")
    assert "Path=/services/monday/" in done.headers["set-cookie"]
    room.reload()
    here = TestClient(room.client.app).post("/sign-in", data={"token": room.tokens["ada"]}, headers=SAME)
    assert here.history[0].headers["set-cookie"].startswith("autograder-session=")  # on this machine, without https


def test_a_token_that_is_no_good_is_told_in_a_line(room):
    wrong = room.client.post("/sign-in", data={"token": "guessed"}, headers=SAME)
    assert wrong.status_code == 401 and "does not know this token" in wrong.text and "set-cookie" not in wrong.headers
    assert room.client.post("/sign-in", content=b"x" * 20_000, headers=SAME).status_code == 413


def test_a_token_that_is_taken_back_ends_its_sessions(room, teacher, monkeypatch):
    browser = sign_in(room, room.tokens["ada"])
    assert "Your hand-ins" in browser.get("/").text
    assert "no token from now on" in run("tokens", "--take-back", "--student", "ada").output
    assert browser.get("/", follow_redirects=False).headers["location"] == "/sign-in"
    assert room.send("ada", room.pack(**RIGHT)).status_code == 401
    assert "'ada' has no token" in str(run("tokens", "--take-back", "--student", "ada").exception)
    other, instructor = sign_in(room, room.tokens["ben"]), sign_in(room, teacher)
    assert run("tokens", "--take-back", "--instructor", "ines").exit_code == 0
    assert instructor.get("/", follow_redirects=False).status_code == 303
    later = time.monotonic() + people.SECONDS + 1
    monkeypatch.setattr(people.time, "monotonic", lambda: later)
    assert other.get("/", follow_redirects=False).status_code == 303, "no session lasts for ever"


def test_a_student_sees_their_own_alone(room, sandboxed):
    ids = {s: room.send(s, room.pack(**HALF)).json()["id"] for s in ("ada", "ben")}
    browser = sign_in(room, room.tokens["ada"])
    page = browser.get("/").text
    assert "It is being graded" in page and ids["ada"] in page and ids["ben"] not in page
    room.grade()
    page = browser.get("/").text
    assert "2 of 3 points by its checks" in page and "this does not hold: assert halve(4) == 2" in page
    for address in ("/chapters/01_numbers", "/chapters/01_numbers/insights"):
        refused = browser.get(address)
        assert refused.status_code == 403 and "for instructors" in refused.text
    refused = browser.post("/chapters/01_numbers/feedback", data={"proof": proof(page)}, headers=SAME)
    assert refused.status_code == 403 and not (room.course.root / "classroom/feedback").exists()


@pytest.mark.parametrize("show", ["nothing", "points"])
def test_a_page_shows_what_the_instructor_allows(room, sandboxed, show):
    set_up(room.course, f"c.Service.show = {show!r}")
    room.reload()
    room.send("ada", room.pack(**HALF))
    room.grade()
    page = sign_in(room, room.tokens["ada"]).get("/").text
    assert ("2 of 3 points" in page) == (show == "points") and "assert halve" not in page


def test_feedback_is_given_back_and_read_by_whom_it_is_for(room, teacher, sandboxed):
    for student in ("ada", "ben"):
        room.send(student, room.pack(why=f"Written by {student}.", **HALF))
    room.grade()
    student, instructor = sign_in(room, room.tokens["ada"]), sign_in(room, teacher)
    assert student.get("/feedback/01_numbers").status_code == 404
    page = instructor.get("/chapters/01_numbers").text
    done = instructor.post("/chapters/01_numbers/feedback", data={"proof": proof(page)}, headers=SAME)
    assert done.status_code == 200 and "2 pages given back" in done.text
    assert "/feedback/01_numbers" in student.get("/").text
    mine = student.get("/feedback/01_numbers")
    assert "Written by ada." in mine.text and "Written by ben." not in mine.text
    assert "sandbox" in mine.headers["Content-Security-Policy"] and "script-src" not in mine.headers
    for address in ("/feedback/../ben/01_numbers", "/feedback/%2e%2e%2fben", "/feedback/02_words"):
        assert "Written by ben." not in student.get(address).text
    assert instructor.get("/feedback/01_numbers").status_code == 404


def test_an_instructor_sees_who_when_and_what_the_class_is_stuck_on(room, teacher, sandboxed):
    answers = {"ada": HALF, "ben": RIGHT, "cem": {"double": "return -2 * x", "halve": "return x"}}
    for student, answer in answers.items():
        room.send(student, room.pack(**answer))
    browser = sign_in(room, teacher)
    assert "3 hand-ins wait for a verdict" in browser.get("/").text
    room.grade()
    room.client = TestClient(room.client.app)
    site_page = ""
    for _ in range(40):  # what is shown may be two seconds old
        site_page = browser.get("/").text
        if "Everything is graded" in site_page:
            break
        time.sleep(0.1)
    assert "3 students in the class" in site_page and "Ada Lovelace" in site_page
    stuck = re.findall(r"<h3><code>(\w+)</code></h3>.*?<strong>(\d) of (\d)</strong>", site_page, re.DOTALL)
    assert stuck == [("halve", "2", "3"), ("double", "1", "3")]
    table = browser.get("/chapters/01_numbers").text
    assert "3 of 3 students handed in" in table and "2 of 3" in table and "3 of 3" in table
    insights = browser.get("/chapters/01_numbers/insights")
    assert "What the class got wrong" in insights.text and "sandbox" in insights.headers["Content-Security-Policy"]
    assert browser.get("/chapters/02_words/insights").status_code == 404
    headers = {"Authorization": f"Bearer {teacher}"}
    refused = room.client.post("/api/hand-ins/01_numbers", content=room.pack(**RIGHT), headers=headers)
    assert refused.status_code == 403 and "instructors hand nothing in" in refused.json()["error"]


def test_a_form_of_another_page_does_nothing(room, teacher):
    browser = sign_in(room, teacher)
    good = proof(browser.get("/chapters/01_numbers").text)
    other = proof(sign_in(room, teacher).get("/").text)
    tried = [
        ({"proof": good}, {"Sec-Fetch-Site": "cross-site"}),
        ({"proof": good}, {"Sec-Fetch-Site": "same-site"}),
        ({"proof": good}, {"Origin": "https://evil.example"}),
        ({"proof": good}, {"Origin": "null"}),
        ({"proof": good}, {}),
        ({"proof": other}, SAME),
        ({}, SAME),
    ]
    for address in ("/chapters/01_numbers/feedback", "/sign-out"):
        for form, headers in tried:
            assert browser.post(address, data=form, headers=headers).status_code == 403
        assert browser.get(address).status_code == 405 or address != "/sign-out"
    assert (
        browser.post("/sign-in", data={"token": teacher}, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    )
    assert "The class now" in browser.get("/").text, "still signed in"
    out = browser.post("/sign-out", data={"proof": good}, headers={"Origin": "https://testserver"})
    assert out.status_code == 200 and browser.get("/", follow_redirects=False).status_code == 303


def test_a_cookie_ends_with_its_session_and_is_nobody_elses_proof(room):
    browser = sign_in(room, room.tokens["ada"])
    cookie = browser.cookies["__Host-autograder-session"]
    page = browser.get("/").text
    assert "Your hand-ins" in page
    browser.post("/sign-out", data={"proof": proof(page)}, headers=SAME)
    replayed = {"Cookie": f"__Host-autograder-session={cookie}"}
    thief = TestClient(room.client.app, base_url="https://testserver")
    assert thief.get("/", headers=replayed, follow_redirects=False).headers["location"] == "/sign-in"
    # A token is none for the pages, nor a cookie for programs.
    headers = {"Authorization": f"Bearer {room.tokens['ada']}"}
    assert thief.get("/", headers=headers, follow_redirects=False).status_code == 303
    again = sign_in(room, room.tokens["ada"])
    assert again.get("/api/me").status_code == 401
    assert again.post("/api/hand-ins/01_numbers", content=room.pack(**RIGHT), headers=SAME).status_code == 401


@pytest.mark.parametrize(
    "id",
    ["%00", "'%20OR%20'1'='1", "..%2f..%2fservice.db", "0" * 16, "A" * 16, "f" * 5000, "%1b[2J", "%ff%fe"],
    ids=["nul", "sql", "path", "hex", "capitals", "long", "escape", "bytes"],
)
def test_a_forged_receipt_finds_nothing_and_breaks_nothing(room, id, capfd):
    room.send("ben", room.pack(**RIGHT))
    headers = {"Authorization": f"Bearer {room.tokens['ada']}"}
    forged = room.client.get(f"/api/receipts/{id}", headers=headers)
    assert forged.status_code == 404 and "ben" not in forged.text
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("chapter", ["..%2f..%2fsolutions", "%00", "01_numbers%2f..", "<script>alert(1)</script>"])
def test_a_forged_chapter_names_no_other_folder(room, teacher, chapter):
    headers = {"Authorization": f"Bearer {room.tokens['ada']}"}
    sent = room.client.post(f"/api/hand-ins/{chapter}", content=room.pack(**RIGHT), headers=headers)
    assert sent.status_code in (404, 405)
    assert not list(room.course.root.glob("classroom/received/**/*.zip"))
    for browser in (sign_in(room, room.tokens["ada"]), sign_in(room, teacher)):
        for address in (f"/feedback/{chapter}", f"/chapters/{chapter}", f"/chapters/{chapter}/insights"):
            refused = browser.get(address)
            assert refused.status_code in (403, 404) and "<script>alert" not in refused.text


def test_what_headers_claim_decides_nothing(room):
    claimed = {
        "X-Forwarded-User": "ines",
        "X-Remote-User": "ines",
        "Host": "evil.example",
        "X-Forwarded-Host": "e.example",
    }
    asked = room.client.get("/", headers=claimed, follow_redirects=False)
    assert asked.headers["location"] == "/sign-in" and "evil" not in asked.text
    token = {"Authorization": f"Bearer {room.tokens['ada']}"}
    assert room.client.get("/api/me", headers=claimed | token).json() == {"student": "ada"}
    for length in ("-1", "1e9", "0x10", str(10**30)):
        lied = room.client.post("/api/hand-ins/01_numbers", headers=token | {"Content-Length": length})
        assert lied.status_code == 413
    for said in ("Basic YWRhOg==", "Bearer", "Bearer ", f"Bearer {room.tokens['ada']} x", "Bearer " + "x" * 5000):
        assert room.client.get("/api/me", headers={"Authorization": said}).status_code == 401


def test_on_a_hub_a_sign_in_is_good_once_and_for_the_browser_that_began_it(room, monkeypatch):
    jupyterhub = pytest.importorskip("autograder.service.hub")
    auth = SimpleNamespace(hub_host="", hub_prefix="/hub/")
    monkeypatch.setattr(jupyterhub, "challenge", lambda hub: ("verifier", "challenge"))
    monkeypatch.setattr(jupyterhub, "sign_in_address", lambda hub, asked, challenge: f"/hub/authorize?state={asked}")
    shown: list[tuple[str, str]] = []

    async def token_of(hub: object, code: str, verifier: str) -> str:
        shown.append((code, verifier))
        return room.tokens["ada"]

    monkeypatch.setattr(jupyterhub, "token_of", token_of)
    room.reload(hub=SimpleNamespace(auth=auth))
    mine, other = (TestClient(room.client.app, base_url="https://testserver") for _ in range(2))
    begun = mine.get("/", follow_redirects=False).headers["location"].partition("state=")[2]
    back = f"/oauth_callback?code=c&state={begun}"
    assert other.get(back).status_code == 403, "somebody else's browser"
    other.get("/", follow_redirects=False)
    assert other.get(back).status_code == 403, "somebody else's, which has begun one of its own"
    assert mine.get("/oauth_callback?code=c&state=guessed").status_code == 403
    assert shown == []
    replayed = mine.cookies["__Host-autograder-asked"]
    assert mine.get(back, follow_redirects=False).status_code == 303 and shown == [("c", "verifier")]
    assert "Your hand-ins" in mine.get("/").text
    again = other.get(back, headers={"Cookie": f"__Host-autograder-asked={replayed}"}, follow_redirects=False)
    assert again.status_code == 403 and len(shown) == 1
    assert mine.post("/sign-in", data={"token": room.tokens["ben"]}, headers=SAME).status_code == 404


def test_names_and_outputs_that_students_wrote_do_not_act(room, teacher, sandboxed, tmp_path):
    (tmp_path / "hostile.csv").write_text(f'name,id\n"{HOSTILE}",dan\n')
    assert run("students", "add", tmp_path / "hostile.csv").exit_code == 0
    assert run("tokens", tmp_path / "dan.csv").exit_code == 0
    room.tokens["dan"] = (tmp_path / "dan.csv").read_text().split(",")[-1].strip()
    with zipfile.ZipFile(io.BytesIO(room.pack(why=HOSTILE, **HALF))) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".ipynb")]
        notebook = nbformat.reads(archive.read(name).decode(), as_version=4)
    data = {"text/html": HOSTILE, "image/svg+xml": f"<svg onload=alert(1)>{HOSTILE}</svg>", "text/markdown": HOSTILE}
    data["application/javascript"] = "document.title = 'acted'"
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [
                nbformat.v4.new_output("display_data", data),
                nbformat.v4.new_output("stream", text=HOSTILE),
            ]
            cell.outputs.append(nbformat.v4.new_output("error", ename=HOSTILE, evalue=HOSTILE, traceback=[HOSTILE]))
    notebook.metadata["title"] = HOSTILE
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(name, nbformat.writes(notebook))
    assert room.send("dan", packed.getvalue()).status_code == 201
    room.grade()
    assert run("feedback", "01").exit_code == 0
    student, instructor = sign_in(room, room.tokens["dan"]), sign_in(room, teacher)
    pages = [student.get(address) for address in ("/", "/feedback/01_numbers")]
    pages += [instructor.get(a) for a in ("/", "/chapters/01_numbers", "/chapters/01_numbers/insights")]
    for page in pages:
        assert page.status_code == 200
        for acts in ("<script>document", "<img src=x", "<svg onload", "document.title = 'acted'"):
            assert acts not in page.text, (page.url, acts)
    assert "&lt;img src=x" in pages[3].text, "the name is shown as it is"


# In a browser.

playwright = pytest.importorskip("playwright.sync_api")
Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe
CHROMIUM = shutil.which("chromium")
in_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is missing: apt-get install chromium")


@pytest.fixture
def address(room):
    """The pages, where a browser reaches them."""
    options = {"log_level": "warning", "port": 0, "lifespan": "off", "http": connections.Connection}
    server = uvicorn.Server(uvicorn.Config(room.client.app, **options))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    server.should_exit = True
    thread.join(10)


def _talk(address: str, *sent: str, seconds: float = 10) -> bytes:
    """Send pieces of a request, one each half second, and read until the server closes."""
    host, port = address.removeprefix("http://").strip("/").split(":")
    with socket.create_connection((host, int(port)), timeout=seconds) as connection:
        for number, piece in enumerate(sent):
            time.sleep(0.5 * bool(number))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(piece.encode())
        told = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := connection.recv(1 << 16):
                told += piece
    return told


def test_a_connection_of_which_nothing_comes_is_closed(room, monkeypatch, request):
    monkeypatch.setattr(connections, "SECONDS", 0.7)
    monkeypatch.setattr(site, "_SECONDS_FOR_A_FORM", 0.7)
    address = request.getfixturevalue("address")
    assert _talk(address) == b"", "it says nothing"
    assert _talk(address, "GET / HTTP/1.1\r\nHost: x\r\n", *["A: b\r\n"] * 6) == b"", "its header has no end"
    unread = "POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
    assert b"404 Not Found" in _talk(address, unread, *["x"] * 6), "nobody reads its body"
    form = "POST /sign-in HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 100\r\n\r\n"
    assert b"408" in _talk(address, form, *["x"] * 6), "its form has no end"
    monkeypatch.setattr(app, "_MOST_SECONDS", 3)
    token = f"Authorization: Bearer {room.tokens['ada']}\r\n"
    pack = f"POST /api/hand-ins/01_numbers HTTP/1.1\r\nHost: x\r\n{token}Content-Length: 100\r\n\r\n"
    began = time.monotonic()
    assert b"408" in _talk(address, pack, *["x"] * 6), "its pack has no end"
    assert time.monotonic() - began < 5.5, "and the rest of it is not waited for"


def test_a_request_that_two_servers_would_read_in_two_ways_is_refused(room, address):
    """A proxy in front that went by the length would take what follows for the body, and this server for a request."""
    token = f"Host: x\r\nAuthorization: Bearer {room.tokens['ada']}\r\n"
    two = f"POST /api/hand-ins/01_numbers HTTP/1.1\r\n{token}Content-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n"
    told = _talk(address, f"{two}0\r\n\r\nGET /api/me HTTP/1.1\r\n{token}\r\n")
    assert told.count(b"HTTP/1.1 ") == 1 and b"HTTP/1.1 400" in told and b"ada" not in told


# The headings of tables that are one word, and stand in several lines.
BROKEN_WORDS = """
[...document.querySelectorAll("thead th")].map((th) => {
  const range = document.createRange();
  range.selectNodeContents(th);
  return [th.textContent, range.getClientRects().length];
}).filter(([text, lines]) => !/[\\s-]/.test(text) && lines > 1)
"""


@in_chromium
def test_pages_are_read_by_everybody_and_show_what_is_new(room, teacher, address, sandboxed, tmp_path):
    """Keyboard alone, on a phone and on a screen; what a student wrote never acts."""
    shots = os.environ.get("SCREENSHOTS")
    hostile = {"double": f'raise ValueError("{HOSTILE}")', "halve": "return x", "why": HOSTILE}
    room.send("ben", room.pack(**hostile))
    room.grade()
    assert run("feedback", "01").exit_code == 0
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for token, width, scheme in ((room.tokens["ben"], 390, "dark"), (teacher, 1280, "light")):
            room.send("ben", room.pack(note=f"hostile, {scheme}", **hostile))
            room.grade()
            context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
            page = context.new_page()
            problems = []
            page.on("console", lambda said, to=problems: to.append(said.text) if said.type == "error" else None)
            page.on("dialog", lambda dialog, to=problems: to.append(dialog.message))
            page.goto(address)
            page.wait_for_selector("#token:focus")
            page.keyboard.type(token)
            page.keyboard.press("Enter")
            page.wait_for_selector("main[data-again]")
            addresses = [address, f"{address}feedback/01_numbers"]
            if token == teacher:
                addresses = [address, f"{address}chapters/01_numbers", f"{address}chapters/01_numbers/insights"]
            for number, one in enumerate(addresses):
                page.goto(one)
                page.wait_for_load_state("networkidle")
                assert page.evaluate("document.scrollingElement.scrollWidth") <= width, one
                assert "acted" not in page.title() and page.locator("img").count() == 0
                page.set_viewport_size({"width": 200, "height": 800})
                assert page.evaluate(BROKEN_WORDS) == [], one
                page.set_viewport_size({"width": width, "height": 800})
                if shots:
                    page.screenshot(path=f"{shots}/{scheme}-{number}.png", full_page=True)
                if "feedback" not in one and "insights" not in one:  # in their sandbox no script runs
                    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
                    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
                    assert [(f["id"], f["nodes"][0]["html"]) for f in found] == []
            page.goto(address)
            details = page.locator("details[id]").first
            details.evaluate("(one) => (one.open = true)")
            details.locator("summary").focus()
            room.send("ben", room.pack(note=scheme, double="return 2 * x", halve="return x / 2"))
            room.grade()
            told = "3 of 3 points by its checks" if token != teacher else "Nothing: no verdict"
            page.wait_for_function("(told) => document.querySelector('main').innerText.includes(told)", arg=told)
            if token != teacher:
                assert page.evaluate("document.activeElement.tagName") == "SUMMARY", "the place is kept"
            assert problems == []
            if token == teacher:  # whose page looks again after five seconds
                page.route(address, lambda route: route.fulfill(status=503, body="trouble"))
                page.wait_for_function("() => document.querySelector('#now').innerText.includes('has trouble now')")
                assert "The class now" in page.inner_text("main"), "what was there stays"
                page.unroute(address)
                page.wait_for_function("() => document.querySelector('#now').innerText.startsWith('As of')")
            problems.clear()  # the browser's word on the answer above
            page.get_by_role("button", name="Sign out").press("Enter")
            page.wait_for_selector("text=Signed out")
            assert problems == []
            context.close()
        browser.close()
