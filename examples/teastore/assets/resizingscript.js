// Forms answer with the new cookie, a text: go on with it to the next page.
document.addEventListener("submit", async (event) => {
  const form = event.target;
  event.preventDefault();
  const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
  location.href = form.dataset.next + "?cookie=" + encodeURIComponent(await answer.text());
});

// Pictures of products are as wide as there is room for.
function resize() {
  const width = document.body.clientWidth < 700 ? "6em" : "8em";
  for (const picture of document.querySelectorAll(".products img")) picture.style.width = width;
}
window.addEventListener("resize", resize);
window.addEventListener("DOMContentLoaded", resize);
