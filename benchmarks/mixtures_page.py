"""Put the stored results of bench_mixtures.py and search_mixtures.py into docs/mixtures.md.

python benchmarks/mixtures_page.py
"""

from measured import Page

# Accuracy in the papers, in %.
PUBLISHED = {
    ("MixtureSVC", "svmguide1"): 83.27, ("MixtureSVC", "ijcnn1"): 93.41, ("MixtureSVC", "usps"): 95.71,
    ("MixtureSVC", "mnist38"): 98.46, ("MultiTaskMixtureSVC", "ijcnn1"): 96.32,
    ("MultiTaskMixtureSVC", "svmguide1"): 87.88, ("MultiTaskMixtureSVC", "pendigits"): 98.28,
    ("MultiTaskMixtureSVC", "satimage"): 89.70, ("MultiTaskMixtureSVC", "skin"): 98.70,
}  # fmt: skip


def parts(costs, accuracies):
    yield speed(costs["machine"], costs["speed"])
    yield linear(costs["rows"])
    yield size(costs["prune"], costs["growth"])
    yield accuracy(accuracies)


def speed(machine, found):
    return f"""**Speed** ({machine["processor"]}, {machine["date"]}, load {machine["load"]} at the end), ijcnn1, {found["rows"]:,} rows, {found["experts"]} experts, C = 100:

| | seconds | ratio | ratio of processor time | accuracy |
|---|---|---|---|---|
| one EM iteration, against one fit of `KMeansSVC` with {found["experts"]} cells | {found["iteration_seconds"]:.2f} against {found["kmeans_svc_seconds"]:.2f} | {found["iteration_over_kmeans_svc"]:.2f} | {found["iteration_over_kmeans_svc_processor"]:.2f} | |
| scikit-learn's `SVC` (RBF, C = 100, gamma = 16), against a whole fit of {found["fit_iterations"]} iterations | {found["svc_seconds"]:.1f} against {found["fit_seconds"]:.1f} | {found["svc_over_fit"]:.1f} | {found["svc_over_fit_processor"]:.1f} | {100 * found["svc_accuracy"]:.2f} against {100 * found["fit_accuracy"]:.2f} |"""  # noqa: E501


def linear(found):
    lines = ["Ten iterations on more and more rows:", "", "| rows | processor seconds | µs a row and iteration |"]
    lines += ["|---|---|---|"]
    for line in found["table"]:
        cost = 1e5 * line["processor_seconds"] / line["rows"]
        lines.append(f"| {line['rows']:,} | {line['processor_seconds']:.2f} | {cost:.1f} |")
    return "\n".join(lines)


def size(prune, growth):
    tried = ", ".join(
        f"{line['share']:.0%} leaves {line['experts']} ({100 * line['accuracy']:.1f} %)" for line in prune["table"]
    )
    lines = [
        f"**Size**, MNIST odd against even, {growth[0]['experts_at_start']} experts at the start, `nu` "
        f"{prune['share']:.0%} of the rows: the largest share within one standard error of the best on rows held out "
        f"of {prune['rows']:,}, where {tried}. The RBF SVM has C = 10 and scikit-learn's gamma.",
        "",
        "| rows | live experts | accuracy | support vectors of an RBF SVM | its accuracy |",
        "|---|---|---|---|---|",
    ]
    for line in growth:
        machine = "not run | "
        if line["support_vectors"] is not None:
            machine = f"{line['support_vectors']:,} | {100 * line['svc_accuracy']:.2f}"
        lines.append(f"| {line['rows']:,} | {line['experts']} | {100 * line['accuracy']:.2f} | {machine} |")
    return "\n".join(lines)


def accuracy(records):
    lines = [
        "**Accuracy** on the test parts; deviation over seeds.",
        "",
        "| model | set | setting | cross-validation | test | seeds | published |",
        "|---|---|---|---|---|---|---|",
    ]
    for record in sorted(records, key=lambda r: (r["model"], r["set"])):
        setting = ", ".join(f"{name}={value}" for name, value in record["setting"].items())
        # Those of an earlier search have no runners-up.
        star = "" if "runners_up" in record else " *"
        spread = f" ± {record['test_std']:.2f}" if record["seeds"] > 1 else ""
        lines.append(
            f"| {record['model']} | {record['set']}{star} | {setting} | {record['cv']:.2f} "
            f"| {record['test_mean']:.2f}{spread} | {record['seeds']} "
            f"| {PUBLISHED[record['model'], record['set']]:.2f} |"
        )
    return "\n".join(lines)


PAGE = Page("mixtures.md", ("mixtures", "mixtures_accuracy"), parts)

if __name__ == "__main__":
    PAGE.write()
