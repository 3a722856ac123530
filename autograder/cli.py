"""The command line. Each command imports what it needs when it runs, so that `--help` is there at once."""

import gc
import sys
import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import Annotated

try:
    import typer
except ModuleNotFoundError:
    sys.exit('autograder: the command line needs more packages: pip install "autograder[course]"')

from autograder.answers import AnswerError
from autograder.course.curriculum import CLASS, Course, CourseError, class_folder, find_course
from autograder.isolation.sandbox import SandboxError
from autograder.plain import plain

# jsonschema, which nbformat imports, would build the grammar of international addresses for a second at each start, and
# does without when the package is not there. No notebook's schema asks for that check.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # None: there is no such module

app = typer.Typer(
    help="Release, check and grade the course's notebooks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Chapters = Annotated[
    list[str] | None, typer.Argument(metavar="[CHAPTER]...", help="01, or the folder's name; all of them by default")
]
Student = Annotated[str | None, typer.Option(help="only this student's notebooks")]
Class = Annotated[
    str | None,
    typer.Option(
        "--class",
        metavar="NAME",
        envvar=CLASS,
        help="one class of several: its folders and gradebook are in classroom/NAME/",
    ),
]


def main() -> None:
    """Run the command line; bad input is told in one line and ends with exit status 2."""
    # Most of what a short command makes is modules, which stay: looking for garbage among them is a tenth of its time.
    gc.set_threshold(100_000, 20, 20)
    # The working directory may hold what somebody handed in: nothing is imported from there.
    sys.path[:] = [folder for folder in sys.path if Path(folder).is_absolute()]
    try:
        app()
    except (AnswerError, CourseError, SandboxError) as error:
        print(f"autograder: {plain(str(error))}", file=sys.stderr)
        sys.exit(2)


@app.command()
def release(
    chapters: Chapters = None,
    check: Annotated[bool, typer.Option("--check", help="change nothing; fail if notebooks/ is out of date")] = False,
    zip_file: Annotated[
        Path | None, typer.Option("--zip", help="also pack what students get into this file, such as attention.zip")
    ] = None,
    class_name: Class = None,
) -> None:
    """Generate notebooks/, what students get, from solutions/."""
    from autograder.course import release

    course = _with_solutions(class_name)
    chosen = course.select(chapters)
    status = release.run(course, chosen, check=check)
    if zip_file and not status:
        answered = release.write_zip(course, chosen, zip_file)
        print(f"{zip_file} is ready to hand out")
        if answered:
            names = ", ".join(chapter.number for chapter in answered)
            print(
                f"The answers of {names} are in it, for later chapters to import: name a chapter to hand it out instead"
            )
    raise typer.Exit(status)


@app.command()
def collect(
    download: Annotated[Path, typer.Argument(metavar="FOLDER|ZIP", help="what Moodle, Canvas or a mailbox gave you")],
    submitted: Annotated[
        Path | None, typer.Option(help="where hand-ins are put  [default: classroom/submitted]")
    ] = None,
    groups: Annotated[
        Path | None, typer.Option(help="CSV of two columns, group and student: each member gets the group's notebook")
    ] = None,
    class_name: Class = None,
) -> None:
    """Put what students handed in elsewhere where `grade` looks; what is replaced is kept."""
    from autograder.course import collect

    raise typer.Exit(collect.run(_of_class(class_name), download, submitted=submitted, groups=groups))


students_app = typer.Typer(help="Who is in a class.", no_args_is_help=True)
app.add_typer(students_app, name="students")


@students_app.command("add")
def add_students(
    table: Annotated[Path, typer.Argument(metavar="FILE", help="CSV with the columns name, id, email, section")],
    tokens_table: Annotated[
        Path | None, typer.Option("--tokens", metavar="CSV", help="also make tokens for a server, as `tokens` does")
    ] = None,
    class_name: Class = None,
) -> None:
    """Enter a class's students; a class that is not there yet is begun."""
    from autograder.course import students

    course = replace(_with_solutions(), class_name=class_name or "")
    print(students.add(course, table))
    if tokens_table:
        from autograder.service import tokens

        print(tokens.run(course, tokens_table, None, 200))


@app.command()
def tokens(
    table: Annotated[
        Path | None, typer.Argument(metavar="[CSV]", help="the table to write: student, email, token")
    ] = None,
    student: Annotated[
        list[str] | None, typer.Option(help="a new token for this student, in place of the old; may be repeated")
    ] = None,
    instructor: Annotated[
        list[str] | None, typer.Option(help="a token for this instructor, who sees the class; may be repeated")
    ] = None,
    take_back: Annotated[
        bool, typer.Option("--take-back", help="make none: those named have no token from now on")
    ] = False,
    days: Annotated[int, typer.Option(min=1, max=3650, help="how long they are good for")] = 200,
    class_name: Class = None,
) -> None:
    """Make the tokens that students hand in with, for all who have none; the server keeps only their digests."""
    from autograder.service import tokens

    course = _of_class(class_name)
    if take_back:
        print(tokens.take_back(course, student or [], instructor or []))
    elif table is None:
        raise CourseError("which file are the tokens to be written to? Such as: autograder tokens tokens.csv")
    else:
        print(tokens.run(course, table, student, days, instructor))


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="the address to listen at; 0.0.0.0 is all of this machine's")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free")] = 8000,
    certificate: Annotated[Path | None, typer.Option(help="for https: a PEM file, with those who signed it")] = None,
    key: Annotated[Path | None, typer.Option(help="of the certificate")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="processes that grade side by side  [default: up to one for each core]")
    ] = None,
    scheduler: Annotated[str | None, typer.Option(help="a running Dask scheduler, tcp://HOST:PORT")] = None,
    unsafe_no_sandbox: Annotated[
        bool, typer.Option("--unsafe-no-sandbox", help="run students' code with your own rights")
    ] = False,
    hub: Annotated[
        bool, typer.Option("--hub", help="as a service of a JupyterHub, which says where to listen and who is who")
    ] = False,
    class_name: Class = None,
) -> None:
    """Serve a class: take what is handed in, grade it at once, tell students what you allow."""
    from autograder.course.grade import Means
    from autograder.service import serve

    means = Means(workers, scheduler, unsafe_no_sandbox)
    course = _of_class(class_name)
    raise typer.Exit(serve.run(course, host=host, port=port, certificate=certificate, key=key, means=means, on_hub=hub))


@app.command()
def due(
    chapter: Annotated[str, typer.Argument(metavar="CHAPTER", help="01, or the folder's name")],
    when: Annotated[
        str | None, typer.Argument(metavar="WHEN", help="2027-01-15T18:00 by this machine's clock; none takes it back")
    ] = None,
    class_name: Class = None,
) -> None:
    """Set when a chapter is due, or show it; what is late then shows at once, without grading again."""
    from autograder.course import students

    course = _of_class(class_name)
    print(students.set_due(course, course.find(chapter), when))


@app.command()
def grade(
    chapters: Chapters = None,
    submitted: Annotated[
        Path | None, typer.Option(help="holds a folder for each student  [default: classroom/submitted]")
    ] = None,
    student: Student = None,
    json: Annotated[Path | None, typer.Option(help="write the verdict on each check to this file")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="processes that grade side by side  [default: up to one for each core]")
    ] = None,
    scheduler: Annotated[str | None, typer.Option(help="a running Dask scheduler, tcp://HOST:PORT")] = None,
    force: Annotated[bool, typer.Option("--force", help="grade anew what has not changed, too")] = False,
    same_students: Annotated[
        bool, typer.Option("--same-students", help="another folder than before holds work of the same people")
    ] = False,
    unsafe_no_sandbox: Annotated[
        bool, typer.Option("--unsafe-no-sandbox", help="run students' code with your own rights")
    ] = False,
    class_name: Class = None,
) -> None:
    """Grade a class. Notebooks that have not changed since they were graded keep their marks."""
    from autograder.course import grade

    course = _of_class(class_name)
    means = grade.Means(workers, scheduler, unsafe_no_sandbox, force, same_students)
    chosen = course.select(chapters)
    status = grade.run(course, chosen, submitted=submitted, student=student, json_file=json, means=means)
    raise typer.Exit(status)


@app.command()
def replay(
    student: Annotated[str, typer.Argument(metavar="STUDENT", help="the folder's name")],
    chapter: Annotated[str, typer.Argument(metavar="CHAPTER", help="01, or the folder's name")],
    exercise: Annotated[str, typer.Argument(metavar="EXERCISE", help="the exercise's name")],
    submitted: Annotated[
        Path | None, typer.Option(help="holds a folder for each student  [default: classroom/submitted]")
    ] = None,
    class_name: Class = None,
) -> None:
    """Give a verdict again, from the seed that was recorded with it, and show the case that failed."""
    from autograder.course import replay

    course = _of_class(class_name)
    raise typer.Exit(replay.run(course, student, course.find(chapter), exercise, submitted=submitted))


@app.command()
def check(
    chapters: Chapters = None,
    repair: Annotated[bool, typer.Option("--repair", help="mend the notebook; a backup is kept beside it")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="go on, and check again at each save")] = False,
) -> None:
    """Check your own notebooks: each exercise's verdict, and whether the notebook is intact."""
    from autograder.course import check

    course = find_course()
    raise typer.Exit(check.run(course, course.select(chapters), repair=repair, watch=watch))


@app.command("hand-in")
def hand_in(
    chapter: Annotated[str, typer.Argument(metavar="CHAPTER", help="01, or the folder's name")],
    name: Annotated[str | None, typer.Option(help="yours; it is remembered")] = None,
    repair: Annotated[bool, typer.Option("--repair", help="first mend the notebook; a backup is kept")] = False,
    server: Annotated[
        str | None, typer.Option(metavar="URL", envvar="AUTOGRADER_SERVER", help="send it to your class's server")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="holds the token that your instructor gave you, unless AUTOGRADER_TOKEN does  [default: token.txt]"
        ),
    ] = None,
) -> None:
    """Pack a chapter to hand in, and send it if there is a server: looked over, checked, with a receipt to keep."""
    from autograder.course import packing

    course = find_course()
    if server:
        from autograder.service import sending

        chosen = course.find(chapter)
        raise typer.Exit(sending.run(course, chosen, name=name, repair=repair, server=server, token_file=token_file))
    raise typer.Exit(packing.run(course, course.find(chapter), name=name, repair=repair))


@app.command()
def answers(
    chapter: Annotated[str, typer.Argument(metavar="CHAPTER", help="01, or the folder's name")],
    exercise: Annotated[str, typer.Argument(metavar="EXERCISE", help="a written answer's name")],
    table: Annotated[Path, typer.Argument(metavar="CSV", help="student, answer, points, comment")],
    read: Annotated[bool, typer.Option("--read", help="put its points and comments into the gradebook")] = False,
    class_name: Class = None,
) -> None:
    """Mark one written answer of the whole class in a table: write it, fill it in, read it back with --read."""
    from autograder.course import marking

    course = _of_class(class_name)
    if read:
        print(f"{marking.read_marks(course, course.find(chapter), exercise, table)} marks are in the gradebook")
    else:
        print(f"{marking.write_answers(course, course.find(chapter), exercise, table)} answers are in {table}")


@app.command()
def insights(
    chapters: Chapters = None,
    show: Annotated[bool, typer.Option("--open", help="show the page in the browser")] = False,
    class_name: Class = None,
) -> None:
    """Write a page of what the class got wrong, by named mistake; and the same as JSON and CSV."""
    from autograder.course import insights

    course = _of_class(class_name)
    page = insights.run(course, course.select(chapters))
    print(f"{page.as_uri()}\nAlso {page.stem}.json and {page.stem}.csv beside it")
    if show:
        webbrowser.open(page.as_uri())


@app.command()
def feedback(chapters: Chapters = None, student: Student = None, class_name: Class = None) -> None:
    """Write a feedback page for each graded notebook."""
    from autograder.course import feedback

    course = _of_class(class_name)
    pages = feedback.write(course, course.select(chapters), student)
    print(f"{pages} feedback page{'s' * (pages != 1)} in {course.classroom / 'feedback'}")


@app.command()
def export(
    to: Annotated[Path | None, typer.Option(help="folder for the files  [default: classroom]")] = None,
    class_name: Class = None,
) -> None:
    """Write the marks as CSV: nbgrader's own, and what Canvas and Moodle import."""
    from autograder.course import export

    export.run(_of_class(class_name), to)


@app.command()
def mutants(
    chapters: Chapters = None,
    seeds: Annotated[
        int | None, typer.Option(min=2, help="judge each answer with so many seeds; name those whose verdict changes")
    ] = None,
) -> None:
    """Prove the checks: every wrong answer on record fails with its message, every right one passes."""
    from autograder.course import proof

    course = _with_solutions()
    if seeds:
        raise typer.Exit(proof.run_with_seeds(course, course.select(chapters), seeds))
    raise typer.Exit(proof.run(course, course.select(chapters)))


@app.command()
def example_class(chapters: Chapters = None) -> None:
    """Make an example class from the answers on record, and grade it in classroom/example/."""
    from autograder.course import example_class

    course = _with_solutions()
    raise typer.Exit(example_class.run(course, course.select(chapters)))


def _with_solutions(class_name: str | None = None) -> Course:
    course = find_course()
    if not course.has_solutions:
        raise CourseError(
            "this is a student's copy of the course, without solutions/; only `check` and `hand-in` work here"
        )
    class_folder(course.root, class_name or "")
    return replace(course, class_name=class_name or "")


def _of_class(class_name: str | None) -> Course:
    from autograder.course import students

    course = _with_solutions(class_name)
    students.require_class(course)
    return course
