"""agreement.py: in place of the nodes' tccld where plans were made by hand: nodes are asked whether they build several rings
in a communicator (AGREE), and each is answered once all have said so, one has said no, or 0.6 s are over. What else is asked is
not answered."""
import contextlib
import os
import socket
import struct
import threading

PATIENCE = 0.6


def read_lines(text):
    return dict(line.partition(" ")[::2] for line in text.splitlines())


class Agreements:
    def __init__(self, nodes):
        self.nodes = nodes
        self.words = {}  # of a communicator: how many have said yes; or what holds
        self.changed = threading.Condition()

    def word(self, comm, will):
        """What holds for all nodes, after this node's word."""
        with self.changed:
            said = self.words.setdefault(comm, 0)
            if said in range(self.nodes):
                self.words[comm] = "not" if not will else said + 1 if said + 1 < self.nodes else "all"
                self.changed.notify_all()
            if not self.changed.wait_for(lambda: isinstance(self.words[comm], str), PATIENCE):
                self.words[comm] = "late"
            return self.words[comm]

    def answer(self, peer):
        with peer, contextlib.suppress(OSError, struct.error):
            question = peer.recv(struct.unpack(">I", peer.recv(4, socket.MSG_WAITALL))[0], socket.MSG_WAITALL).decode()
            facts = read_lines(question)
            if "tccl-agree" in facts:
                word = self.word(facts["comm"], facts["will"] == "yes")
                answer = f"tccl-agreed 1\nrings {word}\nwhy {'' if word == 'all' else 'another node'}\nend\n".encode()
                peer.sendall(struct.pack(">I", len(answer)) + answer)

    def serve(self, listening):
        while True:
            peer, _ = listening.accept()
            threading.Thread(target=self.answer, args=[peer], daemon=True).start()


def start(plans):
    """For the plans of one step, if they have several rings, several nodes, and no tccld."""
    for plan in filter(os.path.isfile, plans):  # one that is a pipe, say, is for the shim to find
        with contextlib.suppress(OSError, ValueError):
            with open(plan) as file:
                facts = read_lines(file.read())
            path = facts.get("socket", "")
            asks = " | " in facts.get("chain", "") or facts.get("agreed") == "yes"
            if asks and int(facts["n_nodes"]) > 1 and os.path.basename(path) == "no-socket":
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
                listening = socket.socket(socket.AF_UNIX)
                listening.bind(path)
                listening.listen(64)
                threading.Thread(target=Agreements(int(facts["n_nodes"])).serve, args=[listening], daemon=True).start()
                return
