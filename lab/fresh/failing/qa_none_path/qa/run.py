import torch
from torch import nn

from qa import data, options


class Answerer(nn.Module):
    def __init__(self, words: int, answers: int, size: int) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(words, size, mode="mean")
        self.head = nn.Linear(size, answers)

    def forward(self, question: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.bag(question.unsqueeze(0))))


def train(model, words, examples, epochs, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        total = 0.0
        for question, answer in examples:
            target = torch.tensor([words.label(answer)])
            loss = nn.functional.cross_entropy(model(words.encode(question)), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(examples):.3f}")


@torch.no_grad()
def test(model, words, args):
    model.eval()
    examples = data.read(args.test)
    right = 0
    for question, answer in examples:
        right += words.answers[int(model(words.encode(question)).argmax())] == answer
    return right / len(examples)


def main() -> None:
    args = options.parse()
    examples = data.read(args.train)
    words = data.Words(examples)
    model = Answerer(len(words.index), len(words.answers), args.size)
    train(model, words, examples, args.epochs, args.lr)
    torch.save({"model": model.state_dict(), "words": words.index}, args.weights)
    print("accuracy", test(model, words, args))


if __name__ == "__main__":
    main()
