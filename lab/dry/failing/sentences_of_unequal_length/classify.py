"""Tells the language of a sentence by its letters."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SENTENCES = {
    "de": ["der Hund schläft im Garten", "wir fahren morgen ans Meer", "das Buch liegt auf dem Tisch"],
    "en": ["the dog sleeps in the garden", "we go to the sea tomorrow", "the book is on the table"],
    "fr": ["le chien dort dans le jardin", "nous allons à la mer demain", "le livre est sur la table"],
}
LANGUAGES = sorted(SENTENCES)


class Letters(Dataset):
    def __init__(self, longest=28):
        pairs = [(text, code) for code, texts in SENTENCES.items() for text in texts]
        self.pairs = pairs * 20
        self.longest = longest

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        text, language = self.pairs[index]
        letters = torch.tensor([min(ord(letter), 255) for letter in text[: self.longest]])
        return letters, LANGUAGES.index(language)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(256, 16)
        self.gru = nn.GRU(16, 32, batch_first=True)
        self.language = nn.Linear(32, len(LANGUAGES))

    def forward(self, letters):
        _, last = self.gru(self.letters(letters))
        return self.language(last[-1])


def main():
    loader = DataLoader(Letters(), batch_size=10, shuffle=True)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(10):
        for letters, languages in loader:
            loss = nn.functional.cross_entropy(model(letters), languages)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
