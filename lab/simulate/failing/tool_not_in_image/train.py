import subprocess

revision = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True)
print("trained with", revision.stdout.strip())
