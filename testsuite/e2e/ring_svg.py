"""ring_svg.py SVG JSON: does the picture show the ring that tcclacct ring --json has?

Read with a parser of XML; the devices are counted again from the JSON, by chain."""
import itertools
import json
import sys
import xml.dom.minidom

picture = xml.dom.minidom.parse(sys.argv[1])
with open(sys.argv[2]) as file:
    answer = json.load(file)
ring, step = answer["ring"], answer["step"]
for group in picture.getElementsByTagName("g"):  # NCCL's own rings are drawn below
    if group.getAttribute("class") == "nccl":
        own = ["".join(t.data for t in e.childNodes) for e in group.getElementsByTagName("text")]
        group.parentNode.removeChild(group)
texts = ["".join(t.data for t in e.childNodes) for e in picture.getElementsByTagName("text")]
boxes = [e.getAttribute("class") for e in picture.getElementsByTagName("rect")]

# Nodes with the same chains that follow each other are one card for each ring; one ring is below the other.
runs = [own for own, _ in itertools.groupby(n["chains"] for n in ring["nodes"])]
cards = [ring["chains"][own][number] for number in range(ring["rings"]) for own in runs]
stops = [word for word in step["baseline_rings"].replace("|", " ").split() if word.isdigit()]
assert stops and [t for t in own if t.startswith("GPU ") and t[4:].isdigit()] == [f"GPU {gpu}" for gpu in stops], (own, stops)
gpus = [f"GPU {gpu}" for card in cards for gpu in card["gpus"]]
memories = [f"mem {link['memory']}" for card in cards for link in card["links"] if link["kind"] == "memory"]
assert not ring["closed"] and not ring["cut"]
assert [t for t in texts if t.startswith("GPU ") and t[4:].isdigit()] == gpus, (texts, gpus)
assert sorted(t for t in texts if t.startswith("mem ")) == sorted(memories), (texts, memories)
assert boxes.count("gpu") == len(gpus) and boxes.count("nic") == 2 * len(cards), boxes
assert any(step["job_name"] in t for t in texts), texts
assert f"{step['gbps']:.2f} GB/s" in texts and f"{step['baseline_gbps']:.2f} GB/s" in texts, texts
names = [node["name"] for node in ring["nodes"]]
assert len(names) == step["n_nodes"] and sum(len(ring["chains"][n["chains"]][0]["gpus"]) for n in ring["nodes"]) == step["gpus"]
for element in picture.getElementsByTagName("*"):
    for name, value in element.attributes.items():
        assert name != "href" and not name.endswith(":href") and not name.startswith("on"), name
        assert "http" not in value or name == "xmlns", value
assert not picture.getElementsByTagName("script") and not picture.getElementsByTagName("image")
