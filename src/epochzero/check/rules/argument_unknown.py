"""The command line has an argument that the program does not define."""

from epochzero.check.rule import Rule
from epochzero.check.rules.command_line import argument_check

RULE = Rule(
    category="illegal_argument",
    why="Authors often rename an option in the code but not in the launch script. The option can "
    "also belong to another version of the program. The parser terminates the job at startup, "
    "after the wait in the queue.",
    fix="Write the option as the parser defines it, or remove the option.",
    source="Zhang et al., ICSE 2020, section 3.3: about half of the illegal arguments are passed to "
    "Python code by the launching script",
    check=argument_check(
        "unknown", "ambiguous", fix="Remove {option}, or define it in the parser."
    ),
    examples=r"""
        $ python train.py fit --model.width 8 --model.learning_rate 0.1
        from lightning.pytorch import LightningModule
        from lightning.pytorch.cli import LightningCLI


        class Data:
            def __init__(self, **options):
                self.options = options


        class Net(LightningModule):
            def __init__(self, width: int, lr: float = 0.1):
                super().__init__()
                self.lr = lr


        LightningCLI(Net, Data)  # <-
        ==> right.yaml <==
        model:
          width: 8
          lr: 1e-3
        data:
          root: data
        ==> wrong.yaml <==
        model:
          widht: 8
        ---- caught if
        -$ python train.py fit --model.width 8 --model.learning_rate 0.1
        +$ python train.py fit --config wrong.yaml
        @@
        -LightningCLI(Net, Data)  # <-
        +LightningCLI(Net, Data)
        @@
        -  widht: 8
        +  widht: 8  # <-
        ---- ignored if
        -$ python train.py fit --model.width 8 --model.learning_rate 0.1
        +$ python train.py test --model.width=8 --data.anything 1 --ckpt_path=a.ckpt
        ----
        $ python train.py --lr=1 more
        import argparse

        parser = argparse.ArgumentParser()
        parser.add_argument("--lr", type=float)
        parser.add_argument("--epochs", type=int)
        args = parser.parse_args()  # <-
        ---- caught if
        -$ python train.py --lr=1 more
        +$ bash run.sh
        +==> run.sh <==
        +set -e
        +python train.py \
        +    --lrr 3  # <-
        +==> train.py <==
        @@
        -args = parser.parse_args()  # <-
        +args = parser.parse_args()
    """,
)
