"use strict";
(() => {
  const links = [...document.querySelectorAll(".tabs a")];
  const byId = new Map(links.map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links) link.removeAttribute("aria-current");
      const link = byId.get(entry.target.id);
      link.setAttribute("aria-current", "true");
      const bar = link.parentElement;
      bar.scrollLeft = link.offsetLeft - (bar.clientWidth - link.clientWidth) / 2;
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  for (const section of document.querySelectorAll("main > section[id]")) seen.observe(section);
})();
