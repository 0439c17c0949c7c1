'use strict';
// A one-time link: its secret is in the fragment, which this page takes out of the address before anything else.

const [, ticket, path] = /^#(svc_tkt_[0-9a-f]+)(\/.*)?$/.exec(location.hash) || [];
history.replaceState(null, '', location.pathname);

const what = document.querySelector('#what');
const command = document.querySelector('code');
const form = document.querySelector('form');

function refuse(message, hint) {
  what.textContent = message;
  command.textContent = hint;
}

async function describe() {
  const answer = await fetch('/.svc/describe', { method: 'POST', body: new URLSearchParams({ ticket }) });
  const record = await answer.json();
  if (!answer.ok) {
    refuse(`${record.error.message}.`, record.error.hint || '');
    return;
  }
  what.textContent = `${record.port} of the workspace ${record.workspace}, as ${record.user}`;
  form.elements.ticket.value = ticket;
  form.elements.path.value = path || '/';
  form.hidden = false;
  form.elements.open.focus();
}

if (ticket) {
  describe().catch(() => refuse('The service does not answer. Open the link again.', ''));
} else {
  refuse('This address has no link in it. A link is made on the host:', document.body.dataset.command);
}
