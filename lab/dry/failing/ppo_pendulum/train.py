import json
import math

import numpy as np
import torch
from torch import nn
from torch.distributions import Normal


class Pendulum:
    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.theta, self.speed, self.t = self.rng.uniform(-math.pi, math.pi), 0.0, 0
        return self.state()

    def state(self):
        return np.array([np.cos(self.theta), np.sin(self.theta), self.speed], dtype=np.float32)

    def step(self, torque):
        cost = self.theta**2 + 0.1 * self.speed**2 + 0.001 * torque**2
        self.speed = float(np.clip(self.speed + (15 * np.sin(self.theta) + 3 * torque) * 0.05, -8, 8))
        self.theta = (self.theta + self.speed * 0.05 + np.pi) % (2 * np.pi) - np.pi
        self.t += 1
        return self.state(), np.float32(-cost), self.t >= 50


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))
        self.value = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))
        self.log_std = nn.Parameter(torch.zeros(1))

    def policy(self, state):
        return Normal(self.mean(state), self.log_std.exp())


def rollout(env, agent, steps):
    states, actions, logs, rewards, ends, scores = [], [], [], [], [], []
    state, score = env.reset(), 0.0
    for _ in range(steps):
        with torch.no_grad():
            policy = agent.policy(torch.from_numpy(state))
            action = policy.sample()
        following, reward, end = env.step(float(action.clamp(-2, 2)))
        states.append(state), actions.append(action), logs.append(policy.log_prob(action))
        rewards.append(reward), ends.append(end)
        score += reward
        state = following
        if end:
            scores.append(score)
            state, score = env.reset(), 0.0
    return torch.from_numpy(np.stack(states)), torch.stack(actions), torch.stack(logs), rewards, ends, scores


def main():
    torch.manual_seed(1)
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4)
    env = Pendulum(np.random.default_rng(0))
    history = []
    for update in range(25):
        states, actions, logs, rewards, ends, scores = rollout(env, agent, 200)
        with torch.no_grad():
            values = agent.value(states).squeeze(1)
        advantage, running = torch.zeros(200), 0.0
        for t in reversed(range(200)):
            bootstrap = 0.0 if ends[t] or t == 199 else values[t + 1]
            delta = rewards[t] + 0.99 * bootstrap - values[t]
            running = delta + 0.99 * 0.95 * (0.0 if ends[t] else running)
            advantage[t] = running
        goal = advantage + values
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        for _ in range(4):
            ratio = (agent.policy(states).log_prob(actions) - logs).exp().squeeze(1)
            gain = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
            loss = -gain.mean() + 0.5 * (agent.value(states).squeeze(1) - goal).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
        history.append({"update": update, "score": np.mean(scores), "best": max(scores)})
        print(update, history[-1]["score"])
    with open("history.json", "w") as file:
        json.dump(history, file)


if __name__ == "__main__":
    main()
