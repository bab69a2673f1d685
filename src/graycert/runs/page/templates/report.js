"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = data.targets;
  const PAGE = 50, UNIT = 1e6, SVG = "http://www.w3.org/2000/svg";
  const state = { rho: Math.min(1, data.last), kind: 0, sort: "", down: false, page: 0, found: [], chosen: -1 };
  const byId = (id) => document.getElementById(id);

  // Texts. Whatever comes from a data set is text and nothing else; what could hide or turn other text is made visible.
  const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;
  const visible = (text) =>
    String(text).replace(HIDDEN, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
  // Words of the page in those of its readers; what is inserted stays as it is.
  const OURS = new RegExp(`\\b(?:(an?) )?(${Object.keys(data.called).sort((a, b) => b.length - a.length).join("|")})\\b`, "gi");
  const reworded = (text) => (Object.keys(data.called).length ? text.replace(OURS, (found, article, word) => {
    const theirs = data.called[word.toLowerCase()];
    if (article) return `${article[0]}${/^[aeiou]/i.test(theirs) ? "n" : ""} ${theirs}`;
    return /^[A-Z]/.test(word) ? theirs[0].toUpperCase() + theirs.slice(1) : theirs;
  }) : text);
  const say = (parts, ...values) => parts.map((part, place) => reworded(part) + (values[place] ?? "")).join("");
  const one = data.called.node ?? "target";
  const One = one[0].toUpperCase() + one.slice(1);
  const short = (text, most) => ([...text].length > most ? `${[...text].slice(0, most - 1).join("")}…` : text);
  const whole = (number) => number.toLocaleString("en-US");
  const percent = (count, total) => {
    const tenths = total ? Math.floor((1000 * count) / total) : 0;
    return `${Math.floor(tenths / 10)}.${tenths % 10} %`;
  };
  const lower = (number) => (number === null ? "" : (Math.floor(number / 100) / 1e4).toFixed(4));
  const upper = (number) => (Math.ceil(number / 100) / 1e4).toFixed(4);
  const className = (number) => (number < 0 ? "none" : data.classes[number]);
  const common = data.classes.reduce((start, name) => {
    let same = 0;
    while (same < start.length && start[same] === name[same]) same += 1;
    return start.slice(0, same);
  }, data.classes[0]);
  const told = common.lastIndexOf("/") + 1;  // what all classes share is not repeated in every row of a table
  const classShort = (number) => (told > 8 && number >= 0 ? `…${data.classes[number].slice(told)}` : className(number));
  const nameOf = (row) => (all.name ? all.name[row] : String(all.node[row]));
  const nodeName = (place) => (data.nodes.name ? data.nodes.name[place] : String(data.nodes.index[place]));
  const isWhole = (row) => all.radius[row] >= 0 && all.radius[row] >= all.eligible[row];
  const holds = (row, rho) => all.radius[row] >= Math.min(rho, all.eligible[row]);
  const isWrong = (row) => all.label !== undefined && all.label[row] >= 0 && all.prediction[row] !== all.label[row];
  const radiusText = (row) => (isWhole(row) ? "whole field" : all.radius[row] < 0 ? "none" : String(all.radius[row]));

  function make(kind, attributes, ...children) {
    const made = kind.startsWith("svg:") ? document.createElementNS(SVG, kind.slice(4)) : document.createElement(kind);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.map((each) => (each instanceof Node ? each : visible(each))));
    return made;
  }
  const own = (text) => make("bdi", {}, text);
  const option = (value, text) => make("option", { value }, text);

  // The first of each term under a heading says what it means: a button, for pointer, finger and keyboard.
  const TERMS = data.terms.map(([form, place]) => [form, `term-${place}`]);
  const SILENT = "tbody, code, button, a, label, dl, form, svg, summary, output, figure";
  function explain(elements) {
    let seen = new Set();
    for (const each of elements) {
      if (each.tagName === "H2") seen = new Set();
      const walker = document.createTreeWalker(each, NodeFilter.SHOW_TEXT), found = [];
      while (walker.nextNode()) {
        const parent = walker.currentNode.parentElement;
        if (!parent.closest(SILENT) && (!parent.closest("bdi") || parent.closest("thead"))) found.push(walker.currentNode);
      }
      found.forEach((text) => explainText(text, seen));
    }
  }
  const isWord = (sign) => sign !== undefined && /[\p{L}\p{N}_]/u.test(sign);
  function explainText(text, seen) {
    let rest = text;
    for (;;) {
      const said = rest.textContent;
      const places = TERMS.filter(([, id]) => !seen.has(id)).map(([form, id]) => [said.indexOf(form), -form.length, form, id])
        .filter(([at, , form]) => at >= 0 && !isWord(said[at - 1]) && !isWord(said[at + form.length]));
      if (!places.length) return;
      const [at, , form, id] = places.sort(([a, b], [c, d]) => a - c || b - d)[0];
      seen.add(id);
      const word = rest.splitText(at);
      rest = word.splitText(form.length);
      word.replaceWith(make("button", { type: "button", class: "term", popovertarget: id, "aria-describedby": id }, form));
    }
  }

  function table(columns, rows, label) {
    const head = make("tr", {}, ...columns.map((each) => make("th", { scope: "col" }, each)));
    const body = rows.map((cells) =>
      make("tr", {}, ...cells.map((each, place) =>
        make(place ? "td" : "th", place ? {} : { scope: "row" }, each instanceof Node ? each : own(each)))));
    const made = make("table", {}, make("caption", { class: "quiet" }, label),
      make("thead", {}, head), make("tbody", {}, ...body));
    return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, made);
  }

  function drawing(width, height, label, ...children) {
    const said = label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" };
    return make("svg:svg", { viewBox: `0 0 ${width} ${height}`, ...said }, ...children);
  }
  const line = (x1, y1, x2, y2, kind) => make("svg:line", { x1, y1, x2, y2, class: kind });
  const words = (x, y, text, anchor, kind) =>
    make("svg:text", { x, y, "text-anchor": anchor ?? "middle", class: kind ?? "" }, text);

  // Axes with a scale from 0 to `right` and to 1 (as shares) or `top` (as counts), with room below 0 and above the top.
  function axes(right, ticks, top, below, beside, room = 0) {
    const frame = { left: 72, right: 620, up: 14, down: 290 };
    const x = (value) => frame.left + ((frame.right - frame.left) * (value + 0.5)) / (right + 1);
    const y = (value) => frame.down - ((frame.down - frame.up) * (value / top + room)) / (1 + 2 * room);
    const parts = ticks.map(([value, text]) => words(frame.left - 8, y(value) + 4, text, "end"));
    parts.push(...ticks.map(([value]) => line(frame.left, y(value), frame.right, y(value), "grid")));
    const step = Math.max(1, Math.ceil((right + 1) / 16));
    for (let value = 0; value <= right; value += step) parts.push(words(x(value), frame.down + 18, below(value)));
    parts.push(words((frame.left + frame.right) / 2, frame.down + 40, beside));
    return { x, y, parts, frame };
  }
  const SHARES = [0, 0.25, 0.5, 0.75, 1].map((share) => [share, `${100 * share} %`]);
  const counts = (top) => [0, 0.5, 1].map((share) => [Math.round(top * share), whole(Math.round(top * share))]);

  // What holds at ρ: the claim, the numbers, the curves, the table of groups.
  const MEASURES = {
    holds: ["hold, the whole field included", "targets", "holds"],
    certified: ["certified: at least ρ could attack", "targets", "certified"],
    holds_correct: ["correct and hold", "known", "holds_correct"],
    certified_correct: ["correct and certified", "known", "certified_correct"],
  };

  function showRho() {
    const rho = state.rho, everyone = data.cohorts[0].groups[0];
    byId("rho").value = rho;
    byId("rho-value").textContent = rho;
    byId("claim").replaceChildren(...data.claims[rho].map((each) => make("p", {}, each)));
    const tiles = [
      [percent(everyone.holds[rho], everyone.targets),
        say`hold at ρ = ${rho}: ${whole(everyone.holds[rho])} of ${whole(everyone.targets)}, the whole field included`],
      [whole(everyone.targets - everyone.holds[rho]), say`targets are not certified at ρ = ${rho}`],
    ];
    if (everyone.known) {
      tiles.push([percent(everyone.holds_correct[rho], everyone.known), `are correct and hold at ρ = ${rho}`]);
    }
    byId("at-rho").replaceChildren(
      ...tiles.map(([value, what]) => make("div", {}, make("strong", {}, value), make("span", {}, what))));
    explain(byId("claim").children);
    showGroups();
    showTargets();
    if (data.trusting) showTrusting();
    if (state.chosen >= 0) showOneAtRho();
  }

  function showGroups() {
    const kind = data.cohorts[state.kind], chosen = MEASURES[byId("measure").value];
    const [label, total, key] = kind.groups.some((each) => each[chosen[2]]) ? chosen : MEASURES.holds;
    const groups = kind.groups.filter((each) => each[key]);
    const drawn = groups.slice(0, 8);
    const { x, y, parts, frame } = axes(data.last, SHARES, 1, String, `ρ: number of ${data.unit} that may be hostile`);
    parts.push(line(x(state.rho), frame.up, x(state.rho), frame.down, "marker"));
    drawn.forEach((group, place) => {
      const points = group[key].map((count, rho) => `${x(rho)},${y(group[total] ? count / group[total] : 0)}`);
      parts.push(make("svg:polyline", { points: points.join(" "), class: `curve line${place}` }));
      if (data.last <= 40) {
        parts.push(...points.map((point) => point.split(",")).map(([cx, cy]) =>
          make("svg:circle", { cx, cy, r: 4, class: `curve line${place} point` })));
      }
    });
    const everyone = data.cohorts[0].groups[0];
    if (total === "known") {
      for (const [value, text] of [[everyone.as_trained, "as trained"], [everyone.alone, say`own features alone`]]) {
        if (value === null || value === undefined) continue;
        const height = y(value / everyone.known);
        parts.push(line(frame.left, height, frame.right, height, "floor"), words(frame.right, height - 5, text, "end"));
      }
    }
    const said = say`${kind.title}: share of targets that ${label}, over ρ; the numbers at ρ = ${state.rho} are in the table`;
    byId("curves").replaceChildren(drawing(640, 340, said, ...parts));
    byId("legend").replaceChildren(...drawn.map((group, place) => make("li", {},
      drawing(34, 12, "", line(0, 6, 34, 6, `curve line${place}`)), own(short(group.name, 40)))));
    const columns = [kind.heading, say`targets`, ...(groups.some((each) => each.known !== undefined)
      ? ["known class", "as trained", say`own features`] : []), `${label}, ρ = ${state.rho}`, "share"];
    const shares = (group, value) => (value === null || value === undefined ? "" : percent(value, group.known));
    byId("groups").replaceChildren(table(columns, groups.map((group) => [
      group.name, whole(group.targets),
      ...(columns.length > 4 ? [whole(group.known), shares(group, group.as_trained), shares(group, group.alone)] : []),
      whole(group[key][state.rho]), percent(group[key][state.rho], group[total]),
    ]), `${kind.title} at ρ = ${state.rho}`));
    showRadii();
  }

  function showRadii() {
    const most = Math.max(1, ...data.histogram.map(([, some, others]) => some + others));
    const last = Math.max(...data.histogram.map(([radius]) => radius), 0);
    const plain = axes(last + 1, counts(most), most, (each) => (each ? each - 1 : "none"), "certified radius");
    const parts = plain.parts, width = Math.max(1, 0.7 * (plain.x(1) - plain.x(0)));
    for (const [radius, some, others] of data.histogram) {
      const left = plain.x(radius + 1) - width / 2;
      const bar = (from, size, kind) => make("svg:rect", {
        x: left, width, y: plain.y(from + size), height: plain.y(from) - plain.y(from + size), class: kind,
      }, make("svg:title", {}, `radius ${radius < 0 ? "none" : radius}: ${size}`));
      const kind = radius >= state.rho ? "bar reached" : "bar";
      parts.push(bar(0, others, kind), bar(others, some, `${kind} entire`));
    }
    const told = data.histogram.map(([radius, some, others]) => `${radius < 0 ? "none" : radius}: ${some + others}`);
    byId("histogram").replaceChildren(drawing(640, 340, say`Targets by radius: ${told.join(", ")}`, ...parts));
    if (!data.by_degree.length) return;
    const lows = [...new Set(data.by_degree.map(([low]) => low))].sort((a, b) => a - b);
    const top = Math.max(1, ...data.by_degree.map(([, radius]) => radius));
    const large = Math.max(...data.by_degree.map(([, , number]) => number));
    const degrees = axes(lows.length - 1, counts(top), top, (place) => lows[place] < 2 ? lows[place]
      : `${lows[place]}–${2 * lows[place] - 1}`, `in-degree of the ${one}`, 0.08);
    for (const [low, radius, number] of data.by_degree) {
      degrees.parts.push(make("svg:circle", {
        cx: degrees.x(lows.indexOf(low)), cy: degrees.y(Math.max(radius, 0)), r: 3 + 13 * Math.sqrt(number / large),
        class: radius >= state.rho ? "bar reached dot" : "bar dot",
      }, make("svg:title", {}, say`in-degree from ${low}, radius ${radius}: ${number} targets`)));
    }
    byId("by-degree").replaceChildren(
      drawing(640, 340, say`Certified radius against in-degree; the area is the number of targets`, ...degrees.parts));
  }

  // All targets.
  const yes = (row) => (holds(row, state.rho) ? "yes" : "no");
  const COLUMNS = [
    { key: "name", head: one, text: nameOf },
    { key: "prediction", head: say`prediction`, text: (row) => classShort(all.prediction[row]) },
    { key: "label", head: "true class", text: (row) => (all.label[row] < 0 ? "" : classShort(all.label[row])) },
    { key: "radius", head: "radius", text: radiusText, value: (row) => (isWhole(row) ? Infinity : all.radius[row]) },
    { key: "at", head: "holds at ρ", text: yes },
    { key: "eligible", head: `${data.unit} that could`, text: (row) => whole(all.eligible[row]) },
    { key: "margin", head: "lead", text: (row) => lower(all.margin[row]) },
    { key: "lower", head: "p, at least", text: (row) => lower(all.lower[row]) },
    { key: "upper", head: "others, at most", text: (row) => upper(all.upper[row]) },
    { key: "degree", head: "in-degree", text: (row) => whole(all.degree[row]) },
    { key: "status", head: "status", text: (row) => all.status[row] },
  ].filter((each) => ["name", "at"].includes(each.key) || all[each.key] !== undefined);

  function find() {
    const wanted = byId("search").value.toLowerCase(), number = (id) => byId(id).value === "" ? Infinity : +byId(id).value;
    const kind = byId("class").value, status = byId("status").value, at = byId("at").value;
    const wrong = byId("wrong").checked, radius = number("radius"), margin = number("lead") * UNIT;
    const found = [];
    for (let row = 0; row < data.shown; row += 1) {
      if ((kind === "" || all.prediction[row] === +kind) && (status === "" || all.status[row] === status)
        && (at === "" || yes(row) === at) && (!wrong || isWrong(row)) && all.radius[row] <= radius
        && (margin === Infinity || (all.margin !== undefined && all.margin[row] !== null && all.margin[row] <= margin))
        && (wanted === "" || nameOf(row).toLowerCase().includes(wanted))) found.push(row);
    }
    const column = COLUMNS.find((each) => each.key === state.sort);
    if (column) {
      const value = column.value ?? (typeof (all[column.key] ?? [])[0] === "number" && column.key !== "prediction"
        && column.key !== "label" ? (row) => all[column.key][row] ?? -1 : column.text);
      const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
      found.sort((a, b) => (state.down ? -1 : 1) * order(value(a), value(b)) || a - b);
    }
    return found;
  }

  function showTargets() {
    state.found = find();
    const pages = Math.max(1, Math.ceil(state.found.length / PAGE));
    state.page = Math.min(state.page, pages - 1);
    const shown = state.found.slice(state.page * PAGE, (state.page + 1) * PAGE);
    byId("head").replaceChildren(...COLUMNS.map((each) => make("th", {
      scope: "col", "aria-sort": state.sort !== each.key ? "none" : state.down ? "descending" : "ascending" },
      make("button", { type: "button", class: "sort", "data-key": each.key, onclick: () => sortBy(each.key) }, each.head))));
    byId("rows").replaceChildren(...shown.map((row) => make("tr", { class: row === state.chosen ? "chosen" : null },
      ...COLUMNS.map((each, place) => (place === 0
        ? make("th", { scope: "row" }, make("a", { href: link(row) }, own(each.text(row))))
        : make("td", { class: { prediction: "words", label: "words", radius: "brief" }[each.key] ?? null }, own(each.text(row))))))));
    const few = data.total > data.shown ? say` (the weakest ${whole(data.shown)} of ${whole(data.total)} are on this page)` : "";
    byId("found").textContent = say`${whole(state.found.length)} of ${whole(data.shown)} targets${few}, page ${
      state.page + 1} of ${whole(pages)}${state.sort ? "" : ", weakest first"}`;
    byId("before").disabled = state.page === 0;
    byId("after").disabled = state.page >= pages - 1;
  }

  function sortBy(key) {
    Object.assign(state, { down: state.sort === key && !state.down, sort: key, page: 0 });
    showTargets();
    document.querySelector(`#head [data-key="${key}"]`).focus();
  }

  function exported() {
    const quoted = (value) => {
      const text = /^[=+\-@\t\r]/.test(value) && !/^-?[\d.]+$/.test(value) ? `'${value}` : String(value);
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const entire = { key: "whole_field", head: "whole field", text: (row) => (isWhole(row) ? "yes" : "no") };
    const columns = [...COLUMNS, entire, { key: "node", head: "node", text: (row) => all.node[row] }];
    const plain = ({ key, text }, row) => (["eligible", "degree", "radius"].includes(key) ? all[key][row]
      : key === "prediction" || key === "label" ? className(all[key][row]) : text(row));
    const heads = columns.map((each) => (each.key === "at" ? `holds at ${state.rho}` : each.head));
    return [heads, ...state.found.map((row) => columns.map((each) => plain(each, row)))]
      .map((cells) => cells.map(quoted).join(",")).join("\r\n") + "\r\n";
  }

  function download() {
    const address = URL.createObjectURL(new Blob(["\ufeff", exported()], { type: "text/csv" }));
    make("a", { href: address, download: "targets.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }

  // One target.
  const link = (row) => `#rho=${state.rho}&node=${all.node[row]}`;
  const step = (by) => {
    const place = state.found.indexOf(state.chosen) + by;
    if (state.found.length) location.hash = link(state.found[(place + state.found.length) % state.found.length]);
  };

  function showOneAtRho() {
    const row = state.chosen, verb = data.sound ? "holds" : "is said, without proof, to hold";
    const short = all.eligible[row] < state.rho ? ` (only ${all.eligible[row]} ${data.unit} could do anything)` : "";
    byId("one-at-rho").textContent = all.radius[row] < 0 ? say`It has no prediction that could hold.`
      : `At ρ = ${state.rho} it ${holds(row, state.rho) ? verb : "is not certified"}${short}.`;
  }

  function showOne(row) {
    state.chosen = row;
    byId("one").hidden = false;
    byId("one-name").replaceChildren(`${One} `, own(nameOf(row)));
    byId("one-said").replaceChildren(...all.said.rows[row].map((place) => make("p", {}, all.said.texts[place])));
    showOneAtRho();
    byId("one-votes").replaceChildren(...votesOf(row));
    byId("one-delta").replaceChildren(...deltasOf(row));
    byId("one-field").replaceChildren(...fieldOf(row));
    showWhatIf();
    showTargets();
  }

  function votesOf(row) {
    const votes = all.votes[row], total = votes.reduce((sum, [, number]) => sum + number, 0);
    const name = (number) => (number === -1 ? "no class" : number === -2 ? "all other classes" : className(number));
    const parts = [make("h4", {}, "Votes")];
    if (all.exact) {
      return [...parts, table(["class", "score in votes", `hostile ${data.unit} that cannot make it win`],
        all.exact[row].map(([number, score, withstood]) => [className(number), score, withstood]), "Exact votes by class")];
    }
    if (!total) return [];
    parts.push(table(["class", "votes", "share", ""], votes.map(([number, count]) => [
      name(number), whole(count), percent(count, total),
      drawing(120, 14, "", make("svg:rect", { x: 0, y: 2, width: (120 * count) / total, height: 10, class: "bar reached" })),
    ]), "Votes by class"));
    if (all.lower) {
      parts.push(make("p", {}, `Bounds: the reported class has a probability of at least ${lower(all.lower[row])}, `
        + `every other class of at most ${upper(all.upper[row])}.`));
    }
    return parts;
  }

  function deltasOf(row) {
    if (!all.delta || all.radius[row] < 0) return [];
    const deltas = all.delta[row], lead = all.margin ? all.margin[row] : null;
    const rows = deltas.map((delta, place) => [
      String(place + 1), upper(delta), upper(2 * delta), place + 1 <= all.radius[row] ? "yes" : "no"]);
    const { x, y, parts, frame } = axes(deltas.length - 1, [0, 0.5, 1].map((part) => [part, String(part)]), 1,
      (place) => place + 1, `ρ: hostile ${data.unit}`);
    const width = Math.min(60, 0.6 * (x(1) - x(0)));
    deltas.forEach((delta, place) => parts.push(make("svg:rect", {
      x: x(place) - width / 2, width, y: y(delta / UNIT), height: frame.down - y(delta / UNIT),
      class: place + 1 <= all.radius[row] ? "bar reached" : "bar" })));
    if (lead !== null) {
      const height = y(Math.max(lead, 0) / 2 / UNIT);
      parts.push(line(frame.left, height, frame.right, height, "floor"), words(frame.right, height - 5, "half the lead", "end"));
    }
    return [make("h4", {}, "What hostile messages could take, against half the lead"),
      drawing(640, 340, "Δ̄(ρ) as bars, against half the lead as a line; the numbers are in the table", ...parts),
      table(["radius ρ", "Δ̄(ρ)", "lead needed, more than", "holds"], rows, "Δ̄ and the lead needed")];
  }

  // The receptive field: rings of hops, the target in the middle, every node near its neighbours one ring closer.
  function placesOf(nodes, hops, rings) {
    const angle = new Map(), at = new Map(), place = new Map(nodes.map((node, index) => [node, index]));
    const links = [];
    nodes.forEach((node) => data.fields.into[node].forEach((source) => {
      if (place.has(source)) links.push([source, node]);
    }));
    for (let ring = 0; ring <= rings; ring += 1) {
      const inner = (node) => links.filter(([source, target]) => source === node && hops[place.get(target)] === ring - 1)
        .map(([, target]) => angle.get(target)).filter((each) => each !== undefined);
      const toward = new Map(nodes.filter((node) => +hops[place.get(node)] === ring).map((node) => [node, inner(node)[0] ?? 0]));
      const members = [...toward.keys()].sort((a, b) => toward.get(a) - toward.get(b) || a - b);
      members.forEach((node, index) => {
        const turn = (2 * Math.PI * (index + 0.5)) / members.length, far = (275 * ring) / rings;
        angle.set(node, turn);
        at.set(node, [320 + far * Math.cos(turn), 310 + far * Math.sin(turn)]);
      });
    }
    return { at, links };
  }

  function fieldOf(row) {
    const field = data.fields && data.fields.rows[row];
    if (!field) {
      return [make("h4", {}, "Who can reach it"), make("p", { class: "note" }, data.fields
        ? say`The receptive field of this ${one} is not drawn: those of the weakest targets fill the room that there is.`
        : data.no_fields)];
    }
    const hops = [...field.hops].map(Number), rings = Math.max(1, ...hops), worst = new Set(all.worst[row]);
    const { at, links } = placesOf(field.nodes, hops, rings);
    const strongest = Math.max(1, ...(field.influence ?? [1]));
    const parts = [];
    for (let ring = 1; ring <= rings; ring += 1) {
      parts.push(make("svg:circle", { cx: 320, cy: 310, r: (275 * ring) / rings, class: "ring" }));
    }
    links.forEach(([source, target]) => parts.push(line(...at.get(source), ...at.get(target), "edge")));
    const ROLES = ["may be hostile", "trusted", "cannot be hostile here"];
    const describe = (place) => [nodeName(field.nodes[place]), `${hops[place]} ${data.fields.by_votes && hops[place] > 6 ? "or more hops" : "hops"}`, ROLES[+field.roles[place]],
      field.influence && field.roles[place] === "0" ? upper(field.influence[place]) : "",
      worst.has(field.nodes[place]) ? "yes" : ""];
    field.nodes.forEach((node, place) => {
      const [x, y] = at.get(node), role = +field.roles[place];
      const strength = field.influence ? field.influence[place] / strongest : 0.4;
      const kind = `node role${role}${worst.has(node) ? " worst" : ""}${hops[place] ? "" : " center"}`;
      const shape = role === 0 && hops[place]
        ? make("svg:circle", { cx: x, cy: y, r: 9, class: kind, "fill-opacity": 0.15 + 0.85 * strength })
        : make("svg:rect", { x: x - 8, y: y - 8, width: 16, height: 16, class: kind,
          "fill-opacity": role === 0 ? 0.15 + 0.85 * strength : 0.3 });
      shape.append(make("svg:title", {}, describe(place).filter((each) => each).join(", ")));
      parts.push(shape);
      if (!hops[place] || worst.has(node) || field.nodes.length <= 16) {
        const anchor = x < 110 ? "start" : x > 530 ? "end" : "middle";
        parts.push(words(x, y - 13, short(visible(nodeName(node)), 18), anchor, "label"));
      }
    });
    const order = field.nodes.map((_, place) => place).sort((a, b) =>
      worst.has(field.nodes[b]) - worst.has(field.nodes[a])
      || (field.influence ? field.influence[b] - field.influence[a] : 0) || hops[a] - hops[b] || a - b);
    const shape = (kind, round) => drawing(22, 22, "", round ? make("svg:circle", { cx: 11, cy: 11, r: 8, class: kind })
      : make("svg:rect", { x: 3, y: 3, width: 16, height: 16, class: kind }));
    const legend = [...ROLES.map((name, role) => [name, `key role${role}`, role === 0, field.roles.includes(String(role))]),
      ["in the set that nothing is proved against", "key role0 worst", true, worst.size > 0]].filter(([, , , there]) => there);
    const left = field.left ? say` ${whole(field.left)} more nodes of it are not drawn.` : "";
    const how = data.fields.by_votes ? "the more of the lead its vote could take" : "the likelier its message alone arrives";
    const colour = field.influence ? ` The fuller the colour, ${how}.` : "";
    return [make("h4", {}, "Who can reach it"),
      drawing(640, 620, say`Receptive field of ${short(visible(nameOf(row)), 40)}: ${field.nodes.length} nodes by hops; the table lists them`, ...parts),
      make("ul", { class: "legend" }, ...legend.map(([name, kind, round]) => make("li", {}, shape(kind, round), name))),
      make("p", { class: "note" }, say`The ${one} is the square in the middle; one ring is one hop. An edge joins who is heard `
        + `with who hears it. A thick outline: as far as is known.${colour}${left}`),
      make("details", {}, make("summary", {}, say`The nodes of this drawing as a table`),
        table([say`node`, "away", "role", data.fields.by_votes ? "share of a vote at stake" : "influence, at most", "in the set that nothing is proved against"], order.map(describe), say`Nodes of the receptive field`))];
  }

  // What trusting the first few nodes gains: counted in Python.
  function showTrusting() {
    const trust = data.trusting, number = +byId("trust").value, rho = state.rho;
    byId("trust-value").value = number;
    const total = data.cohorts[0].groups[0].targets, [before, after] = [trust.holds[0][rho], trust.holds[number][rho]];
    byId("trust-said").replaceChildren(number ? `Trusting ` : "", ...trust.names.slice(0, number).flatMap((name, place) =>
      [place ? ", " : "", own(short(visible(name), 60))]), number ? say`: at ρ = ${rho} at least ${whole(after)} of ${
      whole(total)} targets hold, instead of ${whole(before)}.` : `At ρ = ${rho}, ${whole(before)} of ${whole(total)} hold.`);
  }

  // What other probabilities would make of Δ̄: Theorem 2 for one or two steps, Theorem 3 over the worst nodes.
  function showWhatIf() {
    const row = state.chosen, field = data.fields && data.fields.rows[row], known = data.smoothing;
    byId("what-if").hidden = !known || !field || field.left > 0;
    if (byId("what-if").hidden) return;
    const [deleted, hidden] = [+byId("p-delete").value, +byId("p-ablate").value], into = data.fields.into;
    byId("p-delete-value").value = deleted;
    byId("p-ablate-value").value = hidden;
    const target = field.nodes[0], first = new Set(into[target]), paths = new Map();
    for (const middle of known.steps > 1 ? first : []) {
      for (const source of into[middle]) if (source !== target) paths.set(source, (paths.get(source) ?? 0) + 1);
    }
    const kept = 1 - deleted;
    const single = field.nodes.map((node, place) => (field.roles[place] !== "0" ? 0 : node === target ? 1 - hidden
      : (1 - hidden) * (1 - (first.has(node) ? 1 - kept : 1) * (1 - kept * kept) ** (paths.get(node) ?? 0))));
    single.sort((a, b) => b - a);
    const deltas = [];
    let missed = 1;
    for (const delta of single.filter((each) => each > 0).slice(0, 20)) {
      missed *= 1 - delta;
      deltas.push(1 - missed);
    }
    const reached = deltas.filter((delta) => 2 * delta < 1).length;
    byId("what-if-said").textContent = deltas.length && reached === single.filter((each) => each > 0).length
      ? "All that could be hostile could be withstood, at best."
      : `At best a radius of ${reached} could be reached${reached === 20 ? " or more" : ""}.`;
    byId("what-if-table").replaceChildren(table(["radius ρ", "Δ̄(ρ)"], deltas.slice(0, reached + 2).map((delta, place) =>
      [String(place + 1), (Math.ceil(delta * 1e4 - 1e-9) / 1e4).toFixed(4)]), "Δ̄ with these probabilities"));
  }

  function followLink() {
    const asked = new URLSearchParams(location.hash.slice(1)), rho = +asked.get("rho");
    if (asked.has("rho") && Number.isInteger(rho) && rho >= 0 && rho <= data.last && rho !== state.rho) {
      state.rho = rho;
      showRho();
    }
    if (!asked.has("node")) return;
    const row = all.node.indexOf(+asked.get("node"));
    if (row < 0) return;
    showOne(row);
    if (!byId("one").contains(document.activeElement)) byId("one-name").focus();
  }

  function start() {
    byId("class").append(...data.classes.map((_, number) => option(number, short(visible(classShort(number)), 60))));
    byId("kind").append(...data.cohorts.map((each, place) => option(place, each.title)));
    const everyone = data.cohorts[0].groups[0];
    byId("measure").append(...Object.entries(MEASURES).filter(([, [, , key]]) => everyone[key])
      .map(([value, [text]]) => option(value, text)));
    for (const id of ["wrong", "lead"]) byId(id).closest("label").hidden = all[id === "wrong" ? "label" : "margin"] === undefined;
    byId("degree-figure").hidden = !data.by_degree.length;
    if (data.trusting) {
      byId("trust").max = data.trusting.names.length;
      byId("trust").addEventListener("input", showTrusting);
    }
    byId("trusting").hidden = !data.trusting;
    for (const name of data.smoothing ? ["delete", "ablate"] : []) {
      byId(`p-${name}`).value = data.smoothing[`p_${name}`];
      byId(`p-${name}`).addEventListener("input", showWhatIf);
    }
    byId("rho").max = data.last;
    byId("rho").addEventListener("input", () => { state.rho = +byId("rho").value; showRho(); });
    byId("kind").addEventListener("input", () => { state.kind = +byId("kind").value; showGroups(); });
    byId("measure").addEventListener("input", showGroups);
    for (const each of byId("filters").elements) {
      each.addEventListener("input", () => { state.page = 0; showTargets(); });
    }
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
    byId("filters").addEventListener("reset", () => setTimeout(() => {
      Object.assign(state, { page: 0, sort: "", down: false });
      showTargets();
    }));
    byId("before").addEventListener("click", () => { state.page -= 1; showTargets(); });
    byId("after").addEventListener("click", () => { state.page += 1; showTargets(); });
    byId("csv").addEventListener("click", download);
    byId("previous").addEventListener("click", () => step(-1));
    byId("next").addEventListener("click", () => step(1));
    const opened = [];
    addEventListener("beforeprint", () => document.querySelectorAll("details:not([open])").forEach((each) => {
      each.open = true;
      opened.push(each);
    }));
    addEventListener("afterprint", () => opened.splice(0).forEach((each) => { each.open = false; }));
    addEventListener("hashchange", followLink);
    document.documentElement.classList.add("scripted");
    explain(document.querySelectorAll("main > h2, main > p, main > ol, main > .glance, main > .scroll, .static"));
    showRho();
    followLink();
  }

  start();
})();
