import json
import sys

import lightning as L
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger

from traffic import Sensors, TrafficModel

DEFAULTS = {"horizon": 6, "epochs": 60, "out": "/scratch/traffic", "data": "/data/traffic/speed.npy"}


def options(words):
    values = dict(DEFAULTS)
    for name, value in zip(words[::2], words[1::2]):
        name = name.lstrip("-").replace("-", "_")
        if name not in values:
            raise SystemExit(f"no option {name}")
        values[name] = type(DEFAULTS[name])(value)
    return values


def callbacks(opts):
    return [ModelCheckpoint(opts["out"], filename="{epoch}-{val_mape:.3f}", monitor="val_mape",
                            every_n_epochs=5),
            LearningRateMonitor("epoch")]


def fit(opts):
    L.seed_everything(2, workers=True)
    data = Sensors(opts["data"], opts["horizon"])
    model = TrafficModel(data.sensors, opts["horizon"])
    trainer = L.Trainer(max_epochs=opts["epochs"], callbacks=callbacks(opts), gradient_clip_val=1.0,
                        logger=CSVLogger(opts["out"]), num_sanity_val_steps=0)
    trainer.fit(model, data)
    print(json.dumps(trainer.test(model, data)))


if __name__ == "__main__":
    {"fit": fit}[sys.argv[1]](options(sys.argv[2:]))
