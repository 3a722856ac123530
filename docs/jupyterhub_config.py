"""A JupyterHub for two classes of this course, each with a server of its own. What to change is above the line.

docs/hub.md says what is what. Start it with: jupyterhub -f docs/jupyterhub_config.py
"""

import os
import sys
from pathlib import Path

c = get_config()  # noqa: F821 (traitlets defines it)

# Where people find the Hub. Over a network that is https (a proxy in front, or c.JupyterHub.ssl_key and ssl_cert).
ADDRESS = os.environ.get("HUB_ADDRESS", "http://127.0.0.1:8000")
# The course with its solutions. Students' servers must not be able to read it.
COURSE = Path(os.environ.get("HUB_COURSE", Path(__file__).resolve().parents[1]))
# What students get, where they can read it: autograder release --zip /srv/attention.zip
HANDOUT = Path(os.environ.get("HUB_HANDOUT", "/srv/attention.zip"))
# Each class: the port that its server listens at, its instructors, its students.
CLASSES = {
    "monday": (9101, ["ines"], ["ada", "ben"]),
    "tuesday": (9102, ["tom"], ["cem"]),
}
# ------------------------------------------------------------------------------------------------

BIN = Path(sys.executable).parent
COURSE_ID = "attention"

c.JupyterHub.bind_url = ADDRESS
c.JupyterHub.services = [
    {
        "name": name,
        "url": f"http://127.0.0.1:{port}",
        "command": [str(BIN / "autograder"), "serve", "--hub", "--class", name],
        "cwd": str(COURSE),
        "environment": {"PATH": f"{BIN}:{os.environ.get('PATH', os.defpath)}"},
        "oauth_no_confirm": True,
    }
    for name, (port, _, _) in CLASSES.items()
]
# The groups are those that nbgrader goes by, too: formgrade-COURSE and nbgrader-COURSE.
c.JupyterHub.load_groups = {
    f"{kind}-{COURSE_ID}-{name}": {"users": people}
    for name, (_, instructors, students) in CLASSES.items()
    for kind, people in (("formgrade", instructors), ("nbgrader", students))
}
# Whoever is in a class may come to its server, and nobody else.
c.JupyterHub.load_roles = [
    {
        "name": f"class-{name}",
        "scopes": [f"access:services!service={name}"],
        "groups": [f"formgrade-{COURSE_ID}-{name}", f"nbgrader-{COURSE_ID}-{name}"],
    }
    for name in CLASSES
]
c.Authenticator.allowed_users = {user for _, *people in CLASSES.values() for group in people for user in group}
# A notebook server hands in with its own token: for that it may come where its owner may.
c.Spawner.server_token_scopes = ["users:activity!user", "access:servers!server", "access:services"]
# Begins as the user: an instructor in the course's folder, where nbgrader finds its configuration; a student at home,
# where the course is put, unless it is there already. JupyterLab is as quiet as with `make lab`: no news, no toolbar
# for writing assignments.
BEGIN = f"""
[ -z "$COURSE_FOLDER" ] || cd "$COURSE_FOLDER"
[ -z "$HANDOUT" ] || [ -e attention ] || "{BIN}/python" -m zipfile -e "$HANDOUT" .
quiet="$PWD/${{HANDOUT:+attention/}}environment/jupyter"
export JUPYTER_CONFIG_PATH="$quiet${{JUPYTER_CONFIG_PATH:+:$JUPYTER_CONFIG_PATH}}"
exec "{BIN}/jupyterhub-singleuser" "$@"
"""
c.Spawner.cmd = ["/bin/sh", "-c", BEGIN, "sh"]


def prepare(spawner):
    """Tell a notebook server its class: instructors work in the course's folder, students in their home."""
    groups = {group.name for group in spawner.user.groups}
    for name in CLASSES:
        if f"formgrade-{COURSE_ID}-{name}" in groups:
            spawner.environment["AUTOGRADER_CLASS"] = name
            spawner.environment["COURSE_FOLDER"] = spawner.notebook_dir = str(COURSE)
        elif f"nbgrader-{COURSE_ID}-{name}" in groups:
            spawner.environment["AUTOGRADER_SERVER"] = f"{ADDRESS}/services/{name}"
            spawner.environment["HANDOUT"] = str(HANDOUT)


c.Spawner.pre_spawn_hook = prepare
