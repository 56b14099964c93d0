"""Step 1 of the speech pipeline: cut the talks into 10-second WAV files, then compute features."""
import logging
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(threadName)s %(message)s")


def convert(video):
    logging.info("converting %s", video)
    target = Path("wav") / video.with_suffix(".wav").name
    command = ["ffmpeg", "-loglevel", "error", "-i", str(video), "-ar", "16000", str(target)]
    subprocess.run(command, check=True)
    return target


def main():
    Path("wav").mkdir(exist_ok=True)
    videos = [Path("talks") / f"talk_{i:02d}.mp4" for i in range(4)]
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="convert") as pool:
        for wav in pool.map(convert, videos):
            logging.info("wrote %s", wav)


if __name__ == "__main__":
    main()
