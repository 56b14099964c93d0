"""PPO with a clipped objective on 32 corridors with a trap at the near end; rewards are noisy and rise late."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.distributions import Categorical


@dataclass
class Args:
    envs: int = 32
    length: int = 9
    horizon: int = 32
    updates: int = 60
    epochs: int = 4
    lr: float = 3e-3
    gamma: float = 0.97
    lam: float = 0.95
    clip: float = 0.2
    ent_coef: float = 0.01
    vf_coef: float = 0.5


class Corridors:
    """Starts at 2; the left end pays 0.2, the right end 1; moves slip with 10 %."""

    def __init__(self, args):
        self.args = args
        self.pos = torch.full((args.envs,), 2)
        self.age = torch.zeros(args.envs)

    def obs(self):
        return nn.functional.one_hot(self.pos, self.args.length).float()

    def step(self, action):
        slip = torch.rand(self.args.envs) < 0.1
        move = torch.where(slip, 1 - action, action) * 2 - 1
        self.pos = (self.pos + move).clamp(0, self.args.length - 1)
        self.age += 1
        left, right = self.pos == 0, self.pos == self.args.length - 1
        reward = 0.2 * left.float() + right.float()
        done = left | right | (self.age >= 40)
        self.pos[done], self.age[done] = 2, 0.0
        return self.obs(), reward, done.float()


class Agent(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(args.length, 64), nn.Tanh())
        self.pi, self.v = nn.Linear(64, 2), nn.Linear(64, 1)

    def forward(self, obs):
        h = self.body(obs)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


def gae(args, rewards, dones, values, last_value):
    advantages = torch.zeros_like(rewards)
    running = torch.zeros(args.envs)
    for t in reversed(range(args.horizon)):
        nxt = last_value if t == args.horizon - 1 else values[t + 1]
        nonterminal = 1.0 - dones[t]
        delta = rewards[t] + args.gamma * nxt * nonterminal - values[t]
        running = delta + args.gamma * args.lam * nonterminal * running
        advantages[t] = running
    return advantages, advantages + values


def main(args):
    torch.manual_seed(1)
    env, agent = Corridors(args), Agent(args)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.lr, eps=1e-5)
    obs = env.obs()
    history = []
    for update in range(1, args.updates + 1):
        batch = {k: [] for k in ("obs", "act", "logp", "val", "rew", "done")}
        for _ in range(args.horizon):
            with torch.no_grad():
                dist, value = agent(obs)
                action = dist.sample()
            nxt, reward, done = env.step(action)
            for key, item in zip(batch, (obs, action, dist.log_prob(action), value, reward, done)):
                batch[key].append(item)
            obs = nxt
        b = {k: torch.stack(v) for k, v in batch.items()}
        with torch.no_grad():
            adv, returns = gae(args, b["rew"], b["done"], b["val"], agent(obs)[1])
        flat = {k: v.flatten(0, 1) for k, v in b.items()}
        adv, returns = adv.flatten(), returns.flatten()
        for _ in range(args.epochs):
            for idx in torch.randperm(len(adv)).chunk(4):
                dist, value = agent(flat["obs"][idx])
                ratio = (dist.log_prob(flat["act"][idx]) - flat["logp"][idx]).exp()
                a = (adv[idx] - adv[idx].mean()) / (adv[idx].std() + 1e-8)
                pg_loss = -torch.min(ratio * a, ratio.clamp(1 - args.clip, 1 + args.clip) * a).mean()
                v_loss = (value - returns[idx]).pow(2).mean()
                loss = pg_loss + args.vf_coef * v_loss - args.ent_coef * dist.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        episodes = b["done"].sum().item()
        history.append(b["rew"].sum().item() / max(episodes, 1))
        if update % 10 == 0:
            print(f"update {update} loss {loss.item():.4f} episode_reward {sum(history[-10:]) / 10:.4f}")


main(Args())
