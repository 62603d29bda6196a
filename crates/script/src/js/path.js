// Paths as on Unix, and between paths and addresses.
(({ facts, part }) => {
  const normalizeParts = (parts, absolute) => {
    const kept = [];
    for (const piece of parts) {
      if (piece === "" || piece === ".") continue;
      if (piece !== "..") kept.push(piece);
      else if (kept.length && kept.at(-1) !== "..") kept.pop();
      else if (!absolute) kept.push("..");
    }
    return kept;
  };
  const path = {
    sep: "/",
    delimiter: ":",
    normalize(p) {
      const absolute = p.startsWith("/");
      const said = normalizeParts(p.split("/"), absolute).join("/");
      const tail = p.endsWith("/") && said ? "/" : "";
      return (absolute ? "/" : "") + said + tail || (absolute ? "/" : ".");
    },
    isAbsolute: (p) => p.startsWith("/"),
    join: (...pieces) => path.normalize(pieces.filter((p) => p !== "").join("/") || "."),
    resolve(...pieces) {
      let whole = "";
      for (const piece of [facts().directory, ...pieces]) whole = piece.startsWith("/") ? piece : `${whole}/${piece}`;
      return `/${normalizeParts(whole.split("/"), true).join("/")}`;
    },
    relative(from, to) {
      const a = path.resolve(from).split("/").filter(Boolean);
      const b = path.resolve(to).split("/").filter(Boolean);
      let same = 0;
      while (same < a.length && same < b.length && a[same] === b[same]) same++;
      return [...a.slice(same).map(() => ".."), ...b.slice(same)].join("/");
    },
    dirname(p) {
      const clean = p.length > 1 ? p.replace(/\/+$/, "") : p;
      const cut = clean.lastIndexOf("/");
      return cut < 0 ? "." : clean.slice(0, cut) || "/";
    },
    basename(p, suffix = "") {
      const name = p.replace(/\/+$/, "").split("/").at(-1) ?? "";
      return suffix && name !== suffix && name.endsWith(suffix) ? name.slice(0, -suffix.length) : name;
    },
    extname(p) {
      const name = path.basename(p);
      const cut = name.lastIndexOf(".");
      return cut <= 0 ? "" : name.slice(cut);
    },
    parse(p) {
      const base = path.basename(p);
      const ext = path.extname(base);
      const root = p.startsWith("/") ? "/" : "";
      return { root, dir: p.includes("/") ? path.dirname(p) : "", base, ext, name: ext ? base.slice(0, -ext.length) : base };
    },
    format: ({ dir, root, base, name = "", ext = "" }) => {
      const last = base ?? name + (ext && !ext.startsWith(".") ? `.${ext}` : ext);
      return dir ? (dir.endsWith("/") ? dir + last : `${dir}/${last}`) : (root ?? "") + last;
    },
    toNamespacedPath: (p) => p,
  };
  path.posix = path;
  path.win32 = { ...path, sep: "\\", delimiter: ";" };

  const fileURLToPath = (url) => decodeURIComponent(new (part("text").URL)(String(url)).pathname);
  const pathToFileURL = (p) => new (part("text").URL)(`file://${path.resolve(p).split("/").map(encodeURIComponent).join("/")}`);
  return { path, fileURLToPath, pathToFileURL };
})
