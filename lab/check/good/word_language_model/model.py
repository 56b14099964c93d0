import torch.nn as nn
import torch.nn.functional as F


class RNNModel(nn.Module):
    def __init__(self, kind, ntoken, ninp, nhid, nlayers, dropout=0.2, tie=False):
        super(RNNModel, self).__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        if kind in ["LSTM", "GRU"]:
            self.rnn = getattr(nn, kind)(ninp, nhid, nlayers, dropout=dropout)
        else:
            nonlinearity = {"RNN_TANH": "tanh", "RNN_RELU": "relu"}[kind]
            self.rnn = nn.RNN(ninp, nhid, nlayers, nonlinearity=nonlinearity)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie:
            if nhid != ninp:
                raise ValueError("tied weights need nhid == emsize")
            self.decoder.weight = self.encoder.weight
        self.kind, self.nhid, self.nlayers, self.ntoken = kind, nhid, nlayers, ntoken

    def forward(self, inputs, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(inputs)), hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return F.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, size):
        weight = next(self.parameters())
        if self.kind == "LSTM":
            return (weight.new_zeros(self.nlayers, size, self.nhid), weight.new_zeros(self.nlayers, size, self.nhid))
        return weight.new_zeros(self.nlayers, size, self.nhid)
