const response = document.getElementById('response');
if (response.method === 'post') response.submit();
else location.replace(response.href);
