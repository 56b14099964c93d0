from argparse import ArgumentParser, Namespace


def parse() -> Namespace:
    parser = ArgumentParser(prog="qa")
    files = parser.add_argument_group("files")
    files.add_argument("--train", required=True, help="JSON with questions and answers")
    files.add_argument("--test", help="the same, asked when training is over")
    files.add_argument("--weights", default="qa.pt")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=1e-2)
    return parser.parse_args()
